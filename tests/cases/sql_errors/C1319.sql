select d + 1.5 from t

select k + interval 1 day from t

select interval 1 day - d from t

select ts + interval 1 fortnight from t

select ts + interval '1 month 1 day' from t

select ts + 1 from t

select d + interval k day from t
