{# Of an enforced contract, the columns and their types have to be those of the query. #}

{% macro corollary_contract() %}
  {%- if config.get('contract').enforced %}{{ get_assert_columns_equivalent(sql) }}{% endif -%}
{% endmacro %}

{# A view is defined in place. The text that is in force already changes nothing; another one is a
   change of the definition, and what depends on it is maintained, in one commit. #}

{% macro corollary_define(words) %}
  {%- set existing = load_cached_relation(this) -%}
  {%- set target = this.incorporate(type=words | replace(' ', '_')) -%}
  {{ run_hooks(pre_hooks, inside_transaction=False) }}
  {{ run_hooks(pre_hooks, inside_transaction=True) }}
  {% if existing is not none and (existing.is_table or should_full_refresh()) %}
    {% do adapter.drop_relation(existing) %}
  {% endif %}
  {% call statement('main') -%}
    {{ corollary_contract() }}
    create or replace {{ words }} {{ target }} as
    {{ sql }}
  {%- endcall %}
  {{ run_hooks(post_hooks, inside_transaction=True) }}
  {% do adapter.commit() %}
  {{ run_hooks(post_hooks, inside_transaction=False) }}
  {{ return({'relations': [target]}) }}
{% endmacro %}

{% materialization view, adapter='corollary' %}
  {{ return(corollary_define('view')) }}
{% endmaterialization %}

{% materialization materialized_view, adapter='corollary' %}
  {{ return(corollary_define('materialized view')) }}
{% endmaterialization %}

{# A table keeps the rows of the last run. Its rows are replaced in one transaction, whose change is
   the difference. #}

{% materialization table, adapter='corollary' %}
  {%- set existing = load_cached_relation(this) -%}
  {%- set target = this.incorporate(type='table') -%}
  {{ run_hooks(pre_hooks, inside_transaction=False) }}
  {{ run_hooks(pre_hooks, inside_transaction=True) }}
  {% set keeps = false %}
  {% if existing is not none and existing.is_table and not should_full_refresh() %}
    {% set before = adapter.get_columns_in_relation(existing) | map(attribute='name') | list %}
    {% set keeps = before == get_columns_in_query(sql) %}
  {% endif %}
  {% if existing is not none and not keeps %}
    {% do adapter.drop_relation(existing) %}
  {% endif %}
  {% call statement('main') -%}
    {{ corollary_contract() }}
    {% if keeps -%}
      delete from {{ target }};
      insert into {{ target }}
    {%- else -%}
      create table {{ target }} as
    {%- endif %}
    {{ sql }}
  {%- endcall %}
  {{ run_hooks(post_hooks, inside_transaction=True) }}
  {% do adapter.commit() %}
  {{ run_hooks(post_hooks, inside_transaction=False) }}
  {{ return({'relations': [target]}) }}
{% endmaterialization %}

{% materialization incremental, adapter='corollary' %}
  {% do exceptions.raise_compiler_error(
    "Corollary maintains views when their sources change: write materialized='materialized_view', "
    ~ "and take is_incremental() out") %}
{% endmaterialization %}
