/// `scheme:PATH?option=value&option=value`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoreUrl {
    pub scheme: String,
    pub path: std::path::PathBuf,
    pub options: Vec<(String, String)>,
}
