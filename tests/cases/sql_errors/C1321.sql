select :missing

select a from t where a = ?

select :odd
