{# A snapshot keeps each version of a row, with the times from which and until which it was the last
   one. A later run is one transaction: it ends the versions that are others now, and adds theirs. #}

{% macro corollary_same(columns, one, other, word) %}
  {%- for each in columns -%}
    {{ one }}.{{ each }} is {{ word }} distinct from {{ other }}.{{ each }}
    {{- "" if loop.last else (" and " if word == "not" else " or ") }}
  {%- endfor -%}
{% endmacro %}

{% materialization snapshot, adapter='corollary' %}
  {%- set existing = load_cached_relation(this) -%}
  {%- set target = this.incorporate(type='table') -%}
  {%- set names = config.get('snapshot_table_column_names') or get_snapshot_table_column_names() -%}
  {%- set unique_key = config.require('unique_key') -%}
  {%- set keys = [unique_key] if unique_key is string else unique_key -%}
  {%- set columns = get_columns_in_query(sql) -%}
  {%- set now = run_started_at.strftime("timestamp '%Y-%m-%d %H:%M:%S.%f'") -%}
  {%- set time = "s." ~ config.get('updated_at') if config.get('updated_at') else now -%}
  {%- set deletes = config.get('hard_deletes') or
    ('invalidate' if config.get('invalidate_hard_deletes') else 'ignore') -%}
  {% if deletes == 'new_record' or config.get('dbt_valid_to_current') %}
    {% do exceptions.raise_compiler_error(
      "snapshots have no `hard_deletes: new_record` and no `dbt_valid_to_current` here: write "
      ~ "`hard_deletes: invalidate`, which ends the versions of rows that are gone") %}
  {% endif %}
  {% if config.require('strategy') == 'timestamp' %}
    {%- set changed = time ~ " > t." ~ names.dbt_valid_from -%}
  {% else %}
    {%- set checked = config.require('check_cols') -%}
    {%- set changed =
      corollary_same(columns if checked == 'all' else checked, "s", "t", "") -%}
  {% endif %}
  {%- set of_row = corollary_same(keys, "s", "t", "not") -%}
  {%- set versions -%}
    select s.{{ columns | join(', s.') }},
      md5({% for each in keys %}cast(s.{{ each }} as text) || '|' || {% endfor -%}
        cast({{ time }} as text)) as {{ names.dbt_scd_id }},
      {{ time }} as {{ names.dbt_updated_at }},
      {{ time }} as {{ names.dbt_valid_from }},
      cast(null as timestamp) as {{ names.dbt_valid_to }}
    from ({{ sql }}) s
  {%- endset -%}
  {{ run_hooks(pre_hooks, inside_transaction=False) }}
  {{ run_hooks(pre_hooks, inside_transaction=True) }}
  {% call statement('main') -%}
    {% if existing is none -%}
      create table {{ target }} as {{ versions }}
    {%- else -%}
      {% if deletes == 'invalidate' -%}
        update {{ target }} t set {{ names.dbt_valid_to }} = {{ now }}
        where t.{{ names.dbt_valid_to }} is null
          and not exists (select 1 from ({{ sql }}) s where {{ of_row }});
      {%- endif %}
      update {{ target }} t
      set {{ names.dbt_valid_to }} = (select max({{ time }}) from ({{ sql }}) s where {{ of_row }})
      where t.{{ names.dbt_valid_to }} is null
        and exists (select 1 from ({{ sql }}) s where {{ of_row }} and ({{ changed }}));
      insert into {{ target }} {{ versions }}
      where not exists (
        select 1 from {{ target }} t
        where t.{{ names.dbt_valid_to }} is null and {{ of_row }} and not ({{ changed }}))
    {%- endif %}
  {%- endcall %}
  {{ run_hooks(post_hooks, inside_transaction=True) }}
  {% do adapter.commit() %}
  {{ run_hooks(post_hooks, inside_transaction=False) }}
  {{ return({'relations': [target]}) }}
{% endmaterialization %}
