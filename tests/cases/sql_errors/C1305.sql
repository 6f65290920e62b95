select uper(s) from t

select my_function(a) from t

select sound(s) from t
