"""The words that TPC-H's tables are made of (section 4.2.2.13 of the specification)."""

REGIONS = ("AFRICA", "AMERICA", "ASIA", "EUROPE", "MIDDLE EAST")
NATIONS = (
    ("ALGERIA", 0),
    ("ARGENTINA", 1),
    ("BRAZIL", 1),
    ("CANADA", 1),
    ("EGYPT", 4),
    ("ETHIOPIA", 0),
    ("FRANCE", 3),
    ("GERMANY", 3),
    ("INDIA", 2),
    ("INDONESIA", 2),
    ("IRAN", 4),
    ("IRAQ", 4),
    ("JAPAN", 2),
    ("JORDAN", 4),
    ("KENYA", 0),
    ("MOROCCO", 0),
    ("MOZAMBIQUE", 0),
    ("PERU", 1),
    ("CHINA", 2),
    ("ROMANIA", 3),
    ("SAUDI ARABIA", 4),
    ("VIETNAM", 2),
    ("RUSSIA", 3),
    ("UNITED KINGDOM", 3),
    ("UNITED STATES", 1),
)
"""With the number of their region."""
SEGMENTS = ("AUTOMOBILE", "BUILDING", "FURNITURE", "MACHINERY", "HOUSEHOLD")
PRIORITIES = ("1-URGENT", "2-HIGH", "3-MEDIUM", "4-NOT SPECIFIED", "5-LOW")
INSTRUCTIONS = ("DELIVER IN PERSON", "COLLECT COD", "NONE", "TAKE BACK RETURN")
MODES = ("REG AIR", "AIR", "RAIL", "SHIP", "TRUCK", "MAIL", "FOB")
TYPES = (
    ("STANDARD", "SMALL", "MEDIUM", "LARGE", "ECONOMY", "PROMO"),
    ("ANODIZED", "BURNISHED", "PLATED", "POLISHED", "BRUSHED"),
    ("TIN", "NICKEL", "BRASS", "STEEL", "COPPER"),
)
CONTAINERS = (
    ("SM", "LG", "MED", "JUMBO", "WRAP"),
    ("CASE", "BOX", "BAG", "JAR", "PKG", "PACK", "CAN", "DRUM"),
)
_COLOURS = """
    almond antique aquamarine azure beige bisque black blanched blue blush brown burlywood
    burnished chartreuse chiffon chocolate coral cornflower cornsilk cream cyan dark deep dim
    dodger drab firebrick floral forest frosted gainsboro ghost goldenrod green grey honeydew hot
    indian ivory khaki lace lavender lawn lemon light lime linen magenta maroon medium metallic
    midnight mint misty moccasin navajo navy olive orange orchid pale papaya peach peru pink plum
    powder puff purple red rose rosy royal saddle salmon sandy seashell sienna sky slate smoke snow
    spring steel tan thistle tomato turquoise violet wheat white yellow
"""
COLOURS = tuple(_COLOURS.split())
_COMMENT_WORDS = """
    special pending unusual express furiously quickly carefully blithely ironic final bold regular
    requests deposits packages accounts theodolites instructions foxes pinto beans dependencies
    sleep wake nag haggle cajole about above after among the slyly even
"""
COMMENT_WORDS = tuple(_COMMENT_WORDS.split())
