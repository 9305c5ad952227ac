//! Starting a server with the preloaded library, and clients of it. Used by the tests and by the
//! example that measures the library's cost.

// Each user takes a part.
#![allow(dead_code)]

use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use tap::preload::VARIABLE;
use tap::reader::{Reader, Snapshot};

/// No wait is longer.
pub const LIMIT: Duration = Duration::from_secs(20);

/// A folder that is removed when dropped.
pub struct Folder(PathBuf);

impl Folder {
    pub fn new() -> Folder {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("kvmeter-tap-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).expect("a temporary folder can be made");
        Folder(path)
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // What is left is in the temporary folder.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The preloaded library, built as a build script builds it.
pub fn library() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
        // Beside the running program: below the build folder.
        let program = std::env::current_exe().expect("a program knows where it is");
        let name = program.file_name().expect("it has a name").to_string_lossy();
        let folder = program.with_file_name(format!("{name}-preload"));
        std::fs::create_dir_all(&folder).expect("a folder for the library can be made");
        tap::preload::compile(&rustc, None, None, &folder).expect("the library can be built")
    })
}

/// A running server; it ends when dropped.
pub struct Server {
    process: Child,
    socket: PathBuf,
    pub folder: Folder,
}

impl Server {
    /// Starts `command`, which listens on `socket` of `folder`.
    pub fn start(mut command: Command, folder: Folder, socket: PathBuf) -> Server {
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let process = command.spawn().expect("the server's program is installed");
        let server = Server { process, socket, folder };
        let end = Instant::now() + LIMIT;
        while UnixStream::connect(&server.socket).is_err() {
            assert!(Instant::now() < end, "the server did not answer in {LIMIT:?}");
            sleep(Duration::from_millis(5));
        }
        server
    }

    pub fn pid(&self) -> u32 {
        self.process.id()
    }

    pub fn connect(&self) -> Client {
        let stream = UnixStream::connect(&self.socket).expect("the server accepts");
        stream.set_read_timeout(Some(LIMIT)).expect("a limit can be set");
        stream.set_write_timeout(Some(LIMIT)).expect("a limit can be set");
        Client(Box::new(stream))
    }

    /// Connects to a port of this machine instead, once something answers.
    pub fn connect_tcp(&self, port: u16) -> Client {
        let end = Instant::now() + LIMIT;
        loop {
            match TcpStream::connect(("127.0.0.1", port)) {
                Ok(stream) => {
                    stream.set_read_timeout(Some(LIMIT)).expect("a limit can be set");
                    stream.set_write_timeout(Some(LIMIT)).expect("a limit can be set");
                    return Client(Box::new(stream));
                }
                Err(why) => assert!(Instant::now() < end, "port {port}: {why}"),
            }
            sleep(Duration::from_millis(5));
        }
    }

    /// CPU time of all its threads, ns.
    pub fn cpu_ns(&self) -> u64 {
        let tasks = std::fs::read_dir(format!("/proc/{}/task", self.pid())).expect("it runs");
        tasks
            .filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("schedstat")).ok())
            .filter_map(|line| line.split(' ').next()?.parse::<u64>().ok())
            .sum()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Adds what preloads the library, counting into `file` if there is one.
pub fn preload(command: &mut Command, file: Option<&Path>) {
    command.env("LD_PRELOAD", library()).env_remove(VARIABLE);
    if let Some(file) = file {
        command.env(VARIABLE, file);
    }
}

pub fn memcached_command(folder: &Folder, arguments: &[&str]) -> (Command, PathBuf) {
    let socket = folder.path("socket");
    let mut command = Command::new("memcached");
    command.arg("-s").arg(&socket).args(arguments);
    let is_root = std::fs::metadata("/proc/self").is_ok_and(|me| me.uid() == 0);
    if is_root {
        command.args(["-u", "root"]);
    }
    (command, socket)
}

pub fn redis_command(folder: &Folder, arguments: &[&str]) -> (Command, PathBuf) {
    let socket = folder.path("socket");
    let mut command = Command::new("redis-server");
    command.args(["--port", "0", "--save", "", "--unixsocket"]).arg(&socket);
    command.arg("--dir").arg(folder.path("")).args(arguments);
    (command, socket)
}

/// A watched server and its counts before the test.
pub struct Watched {
    pub server: Server,
    pub reader: Reader,
    before: Snapshot,
}

impl Watched {
    pub fn start(folder: Folder, (mut command, socket): (Command, PathBuf)) -> Watched {
        let reader = Reader::create(&folder.path("tap")).expect("the file can be made");
        preload(&mut command, Some(reader.path()));
        let server = Server::start(command, folder, socket);
        let before = reader.snapshot();
        let attached = before.server.expect("the server has attached itself");
        assert_eq!(attached.pid, server.pid());
        Watched { server, reader, before }
    }

    pub fn memcached(arguments: &[&str]) -> Watched {
        let folder = Folder::new();
        let command = memcached_command(&folder, arguments);
        Watched::start(folder, command)
    }

    pub fn redis(arguments: &[&str]) -> Watched {
        let folder = Folder::new();
        let command = redis_command(&folder, arguments);
        Watched::start(folder, command)
    }

    pub fn connect(&self) -> Client {
        self.server.connect()
    }

    /// What was counted since the start, once `answered` intervals are: the
    /// answer reaches the client just before it is counted. A little more time
    /// shows that there are not more.
    pub fn counted(&self, answered: u64) -> Snapshot {
        let end = Instant::now() + LIMIT;
        loop {
            let counts = self.reader.snapshot().since(&self.before);
            if counts.totals().answered >= answered || Instant::now() > end {
                sleep(Duration::from_millis(20));
                let counts = self.reader.snapshot().since(&self.before);
                let totals = counts.totals();
                assert_eq!(totals.answered, answered, "{totals:?}");
                assert_eq!(counts.count(), answered, "the histogram holds as many");
                assert_eq!((totals.merged, totals.backwards, totals.beyond), (0, 0, 0));
                return counts;
            }
            sleep(Duration::from_millis(2));
        }
    }
}

/// A client's connection.
pub struct Client(Box<dyn Stream>);

trait Stream: Read + Write + Send {}

impl<T: Read + Write + Send> Stream for T {}

impl Client {
    pub fn send(&mut self, request: &[u8]) {
        self.0.write_all(request).expect("the server takes the request");
    }

    /// Reads exactly `answer`.
    pub fn expect(&mut self, answer: &[u8]) {
        let mut got = vec![0; answer.len()];
        self.0.read_exact(&mut got).expect("the server answers in time");
        assert!(got == answer, "{}", String::from_utf8_lossy(&got[..got.len().min(200)]));
    }

    pub fn request(&mut self, request: &[u8], answer: &[u8]) {
        self.send(request);
        self.expect(answer);
    }

    /// Reads `bytes` of whatever comes.
    pub fn skip(&mut self, bytes: usize) {
        let mut got = vec![0; bytes];
        self.0.read_exact(&mut got).expect("the server answers in time");
    }

    /// Reads until what came ends with `end`.
    pub fn skip_to(&mut self, end: &[u8]) {
        let mut got = Vec::new();
        let mut piece = [0; 4096];
        while !got.ends_with(end) {
            let bytes = self.0.read(&mut piece).expect("the server answers in time");
            assert!(bytes > 0, "the server closed the connection");
            got.extend_from_slice(&piece[..bytes]);
        }
    }
}

/// A binary memcached message.
pub fn binary(opcode: u8, extras: &[u8], key: &[u8], value: &[u8]) -> Vec<u8> {
    let body = extras.len() + key.len() + value.len();
    let mut message = vec![0x80, opcode];
    message.extend((key.len() as u16).to_be_bytes());
    message.extend([extras.len() as u8, 0, 0, 0]);
    message.extend((body as u32).to_be_bytes());
    message.extend([0; 12]);
    message.extend([extras, key, value].concat());
    message
}

/// A RESP command.
pub fn resp(words: &[&[u8]]) -> Vec<u8> {
    let mut command = format!("*{}\r\n", words.len()).into_bytes();
    for word in words {
        command.extend(format!("${}\r\n", word.len()).bytes());
        command.extend(*word);
        command.extend(b"\r\n");
    }
    command
}
