pub mod store;

use crate::ids::{ItemId, TenantId};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct WorkerId(pub i64);

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Claim {
    pub worker: WorkerId,
    pub tenant: TenantId,
    pub item: ItemId,
    pub number: i32,
}
