//! Short forms of SQL statements that must succeed: the pool, the statement, its parameters.

/// Runs a statement; returns the number of rows it changed.
macro_rules! execute {
    ($pool:expr, $sql:expr $(,)?) => {
        sqlx::raw_sql($sql).execute($pool).await.unwrap().rows_affected()
    };
    ($pool:expr, $sql:expr, $($value:expr),+ $(,)?) => {
        sqlx::query($sql)$(.bind($value))+.execute($pool).await.unwrap().rows_affected()
    };
}

/// The only value of the only row.
macro_rules! value {
    ($pool:expr, $sql:expr $(, $value:expr)* $(,)?) => {
        sqlx::query_scalar($sql)$(.bind($value))*.fetch_one($pool).await.unwrap()
    };
    ($pool:expr, $sql:expr $(, $value:expr)*, => $type:ty) => {
        sqlx::query_scalar::<_, $type>($sql)$(.bind($value))*.fetch_one($pool).await.unwrap()
    };
}

/// The only value of each row.
macro_rules! values {
    ($pool:expr, $sql:expr $(, $value:expr)* $(,)?) => {
        sqlx::query_scalar($sql)$(.bind($value))*.fetch_all($pool).await.unwrap()
    };
    ($pool:expr, $sql:expr $(, $value:expr)*, => $type:ty) => {
        sqlx::query_scalar::<_, $type>($sql)$(.bind($value))*.fetch_all($pool).await.unwrap()
    };
}

/// The only row, as a tuple or a `FromRow`.
macro_rules! row {
    ($pool:expr, $sql:expr $(, $value:expr)* $(,)?) => {
        sqlx::query_as($sql)$(.bind($value))*.fetch_one($pool).await.unwrap()
    };
    ($pool:expr, $sql:expr $(, $value:expr)*, => $type:ty) => {
        sqlx::query_as::<_, $type>($sql)$(.bind($value))*.fetch_one($pool).await.unwrap()
    };
}

/// The rows, as tuples or `FromRow`s.
macro_rules! rows {
    ($pool:expr, $sql:expr $(, $value:expr)* $(,)?) => {
        sqlx::query_as($sql)$(.bind($value))*.fetch_all($pool).await.unwrap()
    };
    ($pool:expr, $sql:expr $(, $value:expr)*, => $type:ty) => {
        sqlx::query_as::<_, $type>($sql)$(.bind($value))*.fetch_all($pool).await.unwrap()
    };
}
