{# The rows of a seed are replaced in one transaction, whose change is the difference. #}

{% macro corollary__create_csv_table(model, agate_table) %}
  {% do adapter.add_query('begin', auto_begin=False) %}
  {{ return(default__create_csv_table(model, agate_table)) }}
{% endmacro %}

{% macro corollary__reset_csv_table(model, full_refresh, old_relation, agate_table) %}
  {% if full_refresh %}
    {% do adapter.drop_relation(old_relation) %}
    {{ return(corollary__create_csv_table(model, agate_table)) }}
  {% endif %}
  {% do adapter.add_query('begin', auto_begin=False) %}
  {% do adapter.add_query('delete from ' ~ old_relation, auto_begin=False) %}
  {{ return('delete from ' ~ old_relation) }}
{% endmacro %}

{% macro corollary__load_csv_rows(model, agate_table) %}
  {% set sql = default__load_csv_rows(model, agate_table) %}
  {% do adapter.add_query('commit', auto_begin=False) %}
  {{ return(sql) }}
{% endmacro %}

{% macro corollary__get_batch_size() %}
  {{ return(2000) }}
{% endmacro %}
