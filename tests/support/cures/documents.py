"""Cures of documents and queries on them."""

from support.cures import Cure


def query(code: str, wrong: str, note: str, right: str, *, is_warning: bool = False) -> Cure:
    match = "documents match --doc 'r[a b !f]' --query "
    return Cure(code, f"{match}'{wrong}'", note, helps=f"{match}'{right}'", is_warning=is_warning)


def document(code: str, wrong: str, note: str, right: str) -> Cure:
    ask = " --query '/r[a]'"
    return Cure(
        code,
        f"documents match --doc '{wrong}'{ask}",
        note,
        helps=f"documents match --doc '{right}'{ask}",
    )


def update(code: str, wrong: str, note: str, right: str) -> Cure:
    match = "documents match --doc 'r[a !f]' --query '/r[b]' "
    return Cure(code, match + wrong, note, helps=match + right)


def several(code: str, wrong: str, note: str, right: str) -> Cure:
    match = "documents match --doc 'a=r[a !f]' --doc 'b=s' --query "
    return Cure(code, f"{match}'{wrong}'", note, helps=f"{match}'{right}'")


CURES = [
    query("C1200", "/r[a", "close it with `]`", "/r[a]"),
    query("C1201", "/r[not(a)]", "the value of the positive query", "/r[a]"),
    query("C1202", "a", "begin with `/`", "/r/a"),
    query("C1202", "a", "or with `//`", "//a"),
    query("C1203", "/r[]", "`[b]`", "/r[b]"),
    query("C1204", "/r[a$x] return $y", "after the test", "/r[a$x][*$y] return $y"),
    query("C1205", "/r[a$x or b]", "", "/r[a$x or b$x]"),
    query("C1206", "/r" + "/b" * 200, "", "/r/b"),
    query(
        "C1207",
        "/r[*$x][b$y] return $y key $x",
        "return it, too",
        "/r[*$x][b$y] return $x, $y key $x",
    ),
    query("C1207", "/r[*$x][b$y] return $y key $x", "leave it out", "/r[*$x][b$y] return $y"),
    query("C1208", "/r[*$x] key $x, $x", "leave one out", "/r[*$x] key $x"),
    query("C1209", "/r[*$x] return () key $x", "leave out the key", "/r[*$x] return ()"),
    query(
        "C1210",
        "/r[a$x][b$y] where $x = $y",
        "equal",
        "/r[*$x][b$y] where $x = $y",
        is_warning=True,
    ),
    query("C1211", "/r[a][a]", "leave one out", "/r[a]", is_warning=True),
    query(
        "C1212", "/r[a$x or b] where $x > 3 return ()", "bind it in each", "/r[a$x] where $x > 3"
    ),
    query("C1213", "/r[*$x] where $x > y", "`3600`", "/r[*$x] where $x > 3600"),
    document("C1220", "r[a", "add `]`", "r[a]"),
    document("C1221", "r[!f[a]]", "by an update", "r[!f]"),
    document("C1222", "<r>", "", "<r></r>"),
    document("C1223", "<r><?call?></r>", "<?call f?>", "<r><?call f?></r>"),
    document("C1224", "r s", "", "r[s]"),
    document("C1224", "!f", "`r[!f]`", "r[!f]"),
    document("C1225", "<!DOCTYPE r><r/>", "leave out <!DOCTYPE", "<r/>"),
    document("C1226", "deep.xml", "may be nested at will", "r[a[b]]"),
    Cure(
        "C1226",
        "documents match --doc 300.xml --query '//a'",
        "(`--huge`",
        helps="documents match --doc 300.xml --query '//a' --huge",
    ),
    document("C1224", "<r/><?call f?>", "into the root element", "<r><?call f?></r>"),
    document("C1227", '{"": ', "", '{"": null}'),
    document("C1228", "<x:r/>", 'xmlns:p="…"', '<x:r xmlns:x="urn:x"/>'),
    document("C1229", "nowhere.xml", "", "tree.xml"),
    update("C1230", "--update g=b", "it has `f`", "--update f=b"),
    update("C1232", "--once f --update f=b --update f=c", "", "--update f=b --update f=c"),
    update("C1233", "--type f=b --update f=c", "", "--type f=b --update f=b"),
    query(
        "C1257",
        "/r[a arrived $t][b arrived $t]",
        "a variable of its own",
        "/r[a arrived $t][b arrived $u] where $t - $u <= 1h",
    ),
    update("C1258", "--now soon", "`2026-05-01T12:00`", "--now 2026-05-01T12:00"),
    several("C1255", 'doc("c")/r', "there are `a`, `b`", 'doc("a")/r'),
    Cure(
        "C1255",
        "documents match --collection none --query 'collection()/r'",
        "put files into it",
        helps="documents match --collection shelf --query 'collection()/r'",
    ),
    several("C1256", "/r/a", '`doc("name")`', 'doc("a")/r/a'),
    several("C1256", "/r/a", "`collection()`", "collection()/r/a"),
    Cure(
        "C1256",
        "documents xquery --query 'doc(\"a\")/r'",
        "`/r[a]`",
        helps="documents xquery --query '/r[a]'",
    ),
    update("C1240", "--type f=b[c", "add `]`", "--type f=b[c]"),
    update("C1240", "--type 'f=b[c, d|e]'", "parentheses", "--type 'f=b[c, (d|e)]'"),
    update("C1241", "--document-type bad.dtd", "<!ELEMENT name", "--document-type good.dtd"),
    update(
        "C1242", "--document-type 'r[b]'", "its type allows `r[b]`", "--document-type 'r[a, b]'"
    ),
    Cure(
        "C1243",
        "documents match --doc 'r[s[!f] t[!f]]' --query '/r' --document-type 'r[s[a], t[b]]'",
        "different names",
        helps="documents match --doc 'r[s[!f] t[!g]]' --query '/r' --document-type 'r[s[a], t[b]]'",
    ),
    update("C1244", "--document-type r --gc", "without a document type", "--gc"),
    update("C1245", "--document-type 'r[a, !f]'", "leave out `!f`", "--document-type 'r[a]'"),
    Cure(
        "C1246",
        "documents match --doc a=r --doc b=r --query 'doc(\"a\")/r' --document-type r",
        "by itself",
        helps="documents match --doc r --query /r --document-type r",
    ),
    update(
        "C1247",
        "--type 'f=b[c*] key b/c (.)'",
        "into its type",
        "--document-type 'r[a, b*] key r/b (.)'",
    ),
    Cure(
        "C1248",
        "documents match --doc 'r[a[x] a[x]]' --query /r --document-type 'r[a*] key r/a (.)'",
        "take one of them out",
        helps="documents match --doc 'r[a[x]]' --query /r --document-type 'r[a*] key r/a (.)'",
    ),
    Cure(
        "C1249",
        "documents match --doc 'r[a[x]]' --query /r --document-type 'r[a*, b*] r/a in r/b'",
        "correct the value",
        helps="documents match --doc 'r[a[x] b[x]]' --query /r "
        "--document-type 'r[a*, b*] r/a in r/b'",
    ),
    update("C1254", "--updates bad.jsonl", '{"fn": "f"', "--updates good.jsonl"),
    update("C1254", "--updates two.jsonl", "rows of one document", "--updates good.jsonl"),
    update("C1235", "--update f=b --retract f=c", "as they came", "--update f=b --retract f=b"),
    Cure(
        "C1260",
        "documents xquery --query '/r[a]/b$x'",
        "end it with `return ()`",
        helps="documents xquery --query '/r[a]/b$x return ()'",
    ),
]

FILES = {
    "none/note": "not a document\n",
    "shelf/tree.xml": "<r><a/></r>\n",
    "bad.dtd": "<!ELEMENT r",
    "good.dtd": "<!ELEMENT r (a, b?)>\n<!ELEMENT a EMPTY>\n<!ELEMENT b ANY>\n",
    "tree.xml": "<r><a/></r>\n",
    "deep.xml": "<a>" * 100_000 + "</a>" * 100_000,
    "bad.jsonl": '{"function": "f"}\n',
    "two.jsonl": '{"doc": "d", "fn": "f", "xml": "b"}\n{"doc": "e", "fn": "f", "xml": "b"}\n',
    "good.jsonl": '{"fn": "f", "xml": "b"}\n{"fn": "f", "eos": true}\n',
    "300.xml": "<a>" * 300 + "</a>" * 300,
}
