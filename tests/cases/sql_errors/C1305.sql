select uper(s) from t

select my_function(a) from t

select soundex(s) from t
