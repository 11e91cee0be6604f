"""What a data cell has no business with, grouped by the reason, with what to do instead: plain data for `Policy`."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Ban:
    """Things that are refused for one reason.

    Args:
        what: The reason, as it stands in a list of what code may not do.
        remedy: What a model should do instead.
        modules: Names of modules.
        functions: Patterns as `Policy.blocked_functions` explains them.
    """

    what: str
    remedy: str
    modules: frozenset[str] = field(default_factory=frozenset)
    functions: frozenset[str] = field(default_factory=frozenset)

    @property
    def what_but_pip(self) -> str:
        """The reason, where packages may be asked for."""
        return self.what.replace(" or install packages", "").replace(", `%pip`", "")


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


PROCESSES = Ban(
    what="start, control or end processes (`subprocess`, `multiprocessing`, `os.system`, `exit`)",
    remedy="Do the work in this cell with Python and the libraries that are installed; don't start or end a process.",
    modules=_words(
        """
        subprocess _subprocess _posixsubprocess multiprocessing _multiprocessing pty tty pexpect ptyprocess sh
        plumbum fabric invoke signal _signal atexit billiard loky winreg _winapi msvcrt posix nt
        """
    ),
    functions=_words(
        """
        os.system os.popen os.exec* os.spawn* os.posix_spawn* os.fork* os.kill* os.abort os._exit os.startfile
        os.nice os.setuid os.setgid os.chroot os.wait* os.pidfd_open
        asyncio.create_subprocess_* asyncio.subprocess concurrent.futures.ProcessPoolExecutor
        concurrent.futures.process sys._exit exit quit
        .popen .Popen .getstatusoutput .check_output .check_call .execv .execve .execvp .spawnv .spawnl .posix_spawn
        .fork .system
        joblib.externals
        numpy.distutils numpy.f2py numpy.testing.measure numpy.testing.rundocs
        """
    ),
)

NETWORK = Ban(
    what="use the network (`socket`, `requests`, `urllib.request`, …)",
    remedy="Nothing may be fetched or sent; work with the files in the current folder, the variables and the plugins.",
    modules=_words(
        """
        socket _socket socketserver ssl _ssl select selectors requests httpx httpcore aiohttp urllib3 http ftplib
        smtplib smtpd poplib imaplib telnetlib nntplib xmlrpc wsgiref websocket websockets paramiko zmq pycurl
        httplib2 mechanize scrapy selenium playwright webbrowser antigravity asyncore asynchat twisted tornado flask
        fastapi uvicorn docker grpc cgi
        """
    ),
    functions=_words(
        """
        asyncio.open_connection asyncio.open_unix_connection asyncio.start_server asyncio.start_unix_server
        urllib.request urllib.robotparser .urlopen .urlretrieve numpy.DataSource numpy.lib.npyio.DataSource
        logging.handlers.SocketHandler logging.handlers.DatagramHandler logging.handlers.HTTPHandler
        logging.handlers.SMTPHandler logging.handlers.SysLogHandler
        """
    ),
)

ENVIRONMENT = Ban(
    what="read or change the environment, accounts or stored passwords (`os.environ`, `os.getenv`, …)",
    remedy="There is nothing in the environment that a task needs; take values from the task, files or variables.",
    modules=_words(
        """
        dotenv decouple environs keyring getpass pwd grp spwd crypt netrc
        """
    ),
    functions=_words(
        """
        os.path.expandvars os.environ os.environb os.getenv os.getenvb os.putenv os.unsetenv os.getlogin os.getpwnam
        os.umask os.chmod os.chown os.lchown os.lchmod os.mknod os.mkfifo os.setxattr
        .getenv
        """
    ),
)

DELETION = Ban(
    what="delete files or folders",
    remedy="Leave files where they are; write results under a new name.",
    modules=_words("send2trash"),
    functions=_words(
        """
        os.remove os.unlink os.rmdir os.removedirs os.truncate
        shutil.rmtree
        .unlink .rmdir .rmtree .removedirs
        pathlib.Path.unlink pathlib.Path.rmdir pathlib.PosixPath.unlink pathlib.PosixPath.rmdir
        """
    ),
)

DYNAMIC = Ban(
    what="run code from text or reach into Python's internals (`eval`, `exec`, `importlib`, `__globals__`)",
    remedy="Write the code itself in plain Python, and import modules with an `import` statement.",
    modules=_words(
        """
        builtins __builtin__ __main__ code codeop cgitb pydoc trace site runpy imp zipimport marshal bdb pdb
        ipdb pudb doctest ctypes _ctypes cffi _cffi_backend mmap _xxsubinterpreters _interpreters interpreters dis
        """
    ),
    functions=_words(
        """
        eval exec execfile compile __import__
        importlib.import_module importlib.reload importlib.__import__
        sys.modules sys._getframe sys._current_frames sys.settrace sys.setprofile sys.meta_path sys.path_hooks
        sys.addaudithook
        types.FunctionType types.LambdaType types.CodeType types.ModuleType
        cProfile.run cProfile.runctx profile.run profile.runctx inspect.currentframe inspect.stack inspect.trace
        gc.get_objects gc.get_referrers gc.get_referents numpy.ctypeslib
        yaml.unsafe_load yaml.unsafe_load_all yaml.UnsafeLoader
        torch.utils.cpp_extension sqlite3.enable_load_extension .enable_load_extension pandas.core.computation
        enum.bltns .mro
        """
    ),
)

WAITING = Ban(
    what="ask or wait for somebody at the keyboard (`input`, `breakpoint`)",
    remedy="Nobody can type here; take the value from the task, or ask for it in words instead of code.",
    functions=_words("input raw_input breakpoint license credits copyright"),
)

KERNEL = Ban(
    what="reach into the kernel or install packages (`get_ipython`, `!command`, `%pip`)",
    remedy="Write plain Python; the kernel itself can't be changed from a cell.",
    modules=_words(
        """
        ipykernel jupyter_client jupyter_core nbclient nbconvert tw_autogen taskweaver pip ensurepip venv
        """
    ),
    functions=_words(
        """
        get_ipython IPython.get_ipython
        .run_line_magic .run_cell_magic .run_cell .getoutput .system_raw .system_piped
        """
    ),
)

BANS = (PROCESSES, NETWORK, ENVIRONMENT, DELETION, DYNAMIC, WAITING, KERNEL)
"""What the default policy refuses."""

FILES = Ban(
    what="read or write files (`open`, `read_csv`, `to_csv`, `savefig`, …)",
    remedy="Work with the variables that exist and with what plugins give; show the result as the last expression.",
    functions=_words(
        """
        open pandas.read_* pandas.ExcelFile pandas.ExcelWriter pandas.HDFStore pandas.io
        .open .open_code .read_* .write_* .to_csv .to_pickle .to_excel .to_parquet .to_feather .to_hdf .to_sql .to_stata
        .to_xml .to_gbq .to_clipboard .to_orc .to_json .to_string .to_html .to_latex .to_markdown .to_file .to_netcdf
        .to_zarr .to_iceberg .tofile .fromfile .load .loadtxt .genfromtxt .fromregex .memmap .open_memmap .load_pickle
        .save .savez .savez_compressed .savetxt .savefig .savemat .loadmat .imread .imsave .print_png .print_figure
        .print_pdf .print_svg .print_jpg .print_raw .dump .mkdir .makedirs .touch .symlink_to .hardlink_to .listdir
        .scandir .iterdir .glob .rglob .walk .copyfile .copytree .DataSource .connect .TemporaryFile .NamedTemporaryFile
        .mkstemp .mkdtemp .FileIO .ZipFile .TarFile .unpack_archive .make_archive .rc_file .rc_params_from_file
        numpy.lib numpy.info numpy.show_config numpy.show_runtime
        matplotlib.image matplotlib.cbook matplotlib.font_manager matplotlib.texmanager matplotlib.animation
        matplotlib.backends matplotlib.backend_bases matplotlib.testing matplotlib.sphinxext matplotlib.use
        matplotlib.get_data_path matplotlib.get_cachedir matplotlib.get_configdir matplotlib.pyplot.switch_backend
        scipy.io scipy.datasets scipy.misc
        sklearn.datasets.fetch_* sklearn.datasets.load_files sklearn.datasets.load_svmlight_* sklearn.datasets.dump_*
        sklearn.datasets.get_data_home sklearn.datasets.clear_data_home
        .load_dataset .get_dataset_names .fetch_openml .webdoc .webuse .get_rdataset
        """
    ),
)

GUESSING = Ban(
    what="do what only shows when it runs (`getattr`, `vars`, `operator.attrgetter`, text that is evaluated)",
    remedy="Write the attribute, the call or the expression out in plain Python.",
    functions=_words(
        """
        getattr setattr delattr vars globals locals help memoryview
        operator.attrgetter operator.methodcaller string.Formatter typing.get_type_hints typing.ForwardRef
        dataclasses.make_dataclass enum.bltns
        pandas.eval pandas.core pandas.compat pandas.util pandas.tests pandas.test
        numpy.testing numpy.core numpy.compat numpy.test
        scipy.LowLevelCallable scipy.test sklearn.externals sklearn.tests sklearn.show_versions
        .mro .ctypes .ctypeslib .attrgetter .methodcaller .get_type_hints .make_dataclass .vformat .get_field
        .set_trace .runctx .runeval .runcall .runcode .runsource .sympify .lambdify .parse_expr .exec_module
        .load_module .find_spec .import_module .bltns
        """
    ),
)

STRICT_BANS = (FILES, GUESSING)
"""What the strict policy refuses beside that."""

STRICT_FUNCTIONS = FILES.functions | GUESSING.functions

STRICT_MODULES = _words(
    """
    math cmath statistics random datetime time calendar zoneinfo decimal fractions numbers re string textwrap
    unicodedata difflib itertools functools operator collections heapq bisect copy json typing dataclasses enum abc
    contextlib hashlib base64 warnings pprint
    numpy pandas scipy sklearn statsmodels matplotlib seaborn
    """
)
"""The modules that the strict policy lets code import."""

PLAIN_DUNDERS = _words(
    """
    __name__ __doc__ __version__ __init__ __post_init__ __new__ __repr__ __str__ __len__ __iter__ __next__ __contains__
    __eq__ __ne__ __lt__ __le__ __gt__ __ge__ __hash__ __bool__ __int__ __float__ __index__ __add__ __radd__ __iadd__
    __sub__ __rsub__ __mul__ __rmul__ __truediv__ __rtruediv__ __floordiv__ __mod__ __pow__ __matmul__ __neg__ __pos__
    __abs__ __and__ __or__ __xor__ __invert__ __getitem__ __setitem__ __delitem__ __call__ __enter__ __exit__ __format__
    __round__ __slots__ __all__ __main__ __future__ __annotations__ __array__ __copy__ __deepcopy__
    """
)
"""Dunder names that lead nowhere; a policy without `dynamic` allows no others."""

MODULES_INSIDE = (
    frozenset(sys.stdlib_module_names)
    | _words("bltns builtin_mod np pd plt requests psutil urllib3 joblib cloudpickle numexpr sympy")
) - _words(
    """
    abc array ast bisect calendar cmath code cmd codecs collections contextlib copy csv dataclasses datetime decimal
    difflib email enum filecmp fractions functools getopt graphlib hashlib heapq html http imp io itertools json keyword
    locale math mailbox numbers operator parser pprint profile queue random re resource sched secrets select signal site
    statistics string stat struct symbol table textwrap this time timeit token trace turtle types typing unicodedata
    uuid warnings weakref xml zlib stringprep dis test nt numpy graph copyreg wave sndhdr chunk crypt pipes pwd grp
    """
)
"""Names of modules that are no ordinary words: a policy without `dynamic` takes them for modules anywhere."""

# os without processes, environment and deletion; the same for other modules that are needed in part, though blocked
PARTS = _words(
    """
    os.path os.listdir os.scandir os.walk os.fwalk os.getcwd os.getcwdb os.chdir os.makedirs os.mkdir os.stat
    os.lstat os.access os.rename os.renames os.replace os.readlink os.utime os.sep os.altsep os.linesep
    os.extsep os.pathsep os.curdir os.pardir os.devnull os.name os.PathLike os.DirEntry os.fspath os.fsencode
    os.fsdecode os.error os.cpu_count os.process_cpu_count os.sched_getaffinity os.getpid os.getppid os.getuid
    os.uname os.urandom os.times os.get_terminal_size os.terminal_size os.stat_result os.F_OK os.R_OK os.W_OK
    os.X_OK os.SEEK_SET os.SEEK_CUR os.SEEK_END os.fsync os.close os.fdopen os.statvfs os.strerror os.__name__
    os.__doc__
    sys.version sys.version_info sys.hexversion sys.implementation sys.platform sys.byteorder sys.maxsize
    sys.maxunicode sys.float_info sys.int_info sys.hash_info sys.float_repr_style sys.getsizeof sys.getrefcount
    sys.intern sys.argv sys.path sys.executable sys.prefix sys.base_prefix sys.stdout sys.stderr sys.stdin
    sys.__stdout__ sys.__stderr__ sys.exit sys.exc_info sys.getrecursionlimit sys.setrecursionlimit
    sys.getdefaultencoding sys.getfilesystemencoding sys.set_int_max_str_digits sys.get_int_max_str_digits
    sys.flags sys.warnoptions sys.builtin_module_names sys.stdlib_module_names sys.displayhook sys.is_finalizing
    sys.__name__ sys.api_version sys.copyright
    shutil.copy shutil.copy2 shutil.copyfile shutil.copyfileobj shutil.copymode shutil.copystat shutil.copytree
    shutil.move shutil.disk_usage shutil.make_archive shutil.unpack_archive shutil.get_archive_formats
    shutil.get_unpack_formats shutil.get_terminal_size shutil.ignore_patterns shutil.which shutil.Error
    shutil.SameFileError
    importlib.metadata importlib.util.find_spec importlib.resources importlib.invalidate_caches
    urllib.parse urllib.error pkgutil.iter_modules
    psutil.virtual_memory psutil.cpu_count psutil.cpu_percent psutil.disk_usage psutil.__version__
    IPython.display IPython.core.display IPython.core.display_functions IPython.lib.display IPython.__version__
    IPython.version_info IPython.lib.pretty
    multiprocessing.cpu_count http.HTTPStatus http.HTTPMethod
    resource.getrusage resource.RUSAGE_SELF resource.getpagesize
    gc.collect gc.enable gc.disable gc.isenabled gc.get_count gc.get_stats gc.get_threshold gc.set_threshold
    gc.freeze gc.DEBUG_LEAK gc.garbage
    """
)

MAGICS = _words(
    """
    matplotlib time timeit capture config precision pprint who whos who_ls pinfo pinfo2 pdoc pdef psearch
    """
)

SHELL_MAGICS = _words(
    """
    sx sc system bash sh script cmd ruby perl ls ll lf lk lx ldir cat cp mv rm rmdir mkdir man more less
    """
)
"""Magics and IPython's aliases that run a shell command."""

ESCAPES = _words(
    """
    __builtins__ __import__ __loader__ __spec__ __bases__ __base__ __mro__ __subclasses__ __globals__
    __builtin__ __code__ __closure__ __getattribute__ __self__ __reduce__ __reduce_ex__ __objclass__
    __thisclass__ __self_class__ tb_frame tb_next f_globals f_locals f_builtins f_back f_code gi_frame gi_code
    gi_yieldfrom cr_frame cr_code cr_origin ag_frame ag_code func_globals func_code co_code co_consts
    __array_interface__ __array_struct__ __cuda_array_interface__
    """
)
"""Attributes that lead out of an object into the interpreter, whatever the object is."""

PICKLING_HOOKS = _words("__reduce__ __reduce_ex__")
"""Escapes that a class may define for itself, though not read: what they return runs in the kernel, and is judged."""

DISPLAY_HOOKS = _words("_repr_html_ _repr_javascript_ _repr_svg_ _repr_mimebundle_ _ipython_display_")
"""Methods whose text a viewer runs or loads from elsewhere."""

LIBRARY_VARIABLES = _words(
    """
    TF_* KERAS_* XLA_* JAX_* TORCH_* PYTORCH_* CUDA_* NVIDIA_* OMP_* MKL_* OPENBLAS_* BLIS_* VECLIB_* GOTO_* KMP_*
    NUMEXPR_* NUMBA_* LOKY_* JOBLIB_* TOKENIZERS_* TRANSFORMERS_* HF_HUB_* HF_DATASETS_* DATASETS_* ARROW_* POLARS_*
    DASK_* RAY_* MODIN_* SCIPY_* SKLEARN_* TQDM_* WANDB_MODE WANDB_SILENT MPLBACKEND QT_QPA_PLATFORM SDL_VIDEODRIVER
    PYTHONHASHSEED PYTHONWARNINGS TZ NO_COLOR COLUMNS LINES
    """
)
"""Environment variables that set up a numerical library, and that neither a loader nor another program runs."""

WORDS = _words(
    """
    signal select selectors code trace resource sh http ssl site pip invoke fabric requests flask docker crypt
    grp pwd
    gc nt tty dis imp cgi zmq environs decouple mmap netrc interpreters psutil tornado scrapy loky
    """
)
"""Modules whose names are also ordinary words for variables and for parts of other packages."""

USUAL_NAMES = {
    "np": "numpy",
    "pd": "pandas",
    "plt": "matplotlib.pyplot",
    "mpl": "matplotlib",
    "sns": "seaborn",
    "sp": "scipy",
    "sm": "statsmodels.api",
    "tf": "tensorflow",
}
"""Short names that everybody uses; a cell may have them from an earlier cell."""
