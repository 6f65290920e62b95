{# There is one schema, and it is there. #}

{% macro corollary__create_schema(relation) %}
  {% if relation.schema != 'public' %}
    {% do exceptions.raise_compiler_error(
      "relations of a warehouse are in the schema `public`: write `schema: public` in profiles.yml, "
      ~ "and no schemas of models") %}
  {% endif %}
{% endmacro %}

{% macro corollary__drop_schema(relation) %}
{% endmacro %}

{% macro corollary__list_relations_without_caching(schema_relation) %}
  {% call statement('list_relations_without_caching', fetch_result=True, auto_begin=False) -%}
    select '{{ schema_relation.database }}' as database, tablename as name, schemaname as schema,
      'table' as type
    from pg_tables where schemaname = '{{ schema_relation.schema }}'
    union all
    select '{{ schema_relation.database }}', viewname, schemaname, 'view'
    from pg_views where schemaname = '{{ schema_relation.schema }}'
    union all
    select '{{ schema_relation.database }}', matviewname, schemaname, 'materialized_view'
    from pg_matviews where schemaname = '{{ schema_relation.schema }}'
  {%- endcall %}
  {{ return(load_result('list_relations_without_caching').table) }}
{% endmacro %}

{% macro corollary__get_catalog(information_schema, schemas) %}
  {% call statement('catalog', fetch_result=True, auto_begin=False) -%}
    select
      '{{ information_schema.database }}' as table_database,
      n.nspname as table_schema,
      c.relname as table_name,
      case c.relkind when 'v' then 'VIEW' when 'm' then 'MATERIALIZED VIEW' else 'BASE TABLE' end
        as table_type,
      cast(null as text) as table_comment,
      a.attname as column_name,
      a.attnum as column_index,
      format_type(a.atttypid, a.atttypmod) as column_type,
      cast(null as text) as column_comment,
      current_user as table_owner
    from pg_catalog.pg_class c
    join pg_catalog.pg_namespace n on n.oid = c.relnamespace
    join pg_catalog.pg_attribute a on a.attrelid = c.oid
    where n.nspname = 'public' and a.attnum > 0 and c.relkind in ('r', 'v', 'm')
    order by table_name, column_index
  {%- endcall %}
  {{ return(load_result('catalog').table) }}
{% endmacro %}

{# Temporary relations, which unit tests make, are in no catalog. #}

{% macro corollary__get_columns_in_relation(relation) %}
  {{ return(adapter.get_column_schema_from_query('select * from ' ~ relation ~ ' where false')) }}
{% endmacro %}
