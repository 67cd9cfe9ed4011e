// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#if !__has_include(<cufile.h>)
#error "penstock/device/detail/cufile_reader.hpp needs cuFile: link penstock::cufile"
#endif

#include <penstock/base/owned.hpp>
#include <penstock/core/file_range.hpp>
#include <penstock/core/message.hpp>
#include <penstock/core/to_size.hpp>
#include <penstock/device/detail/cuda_lanes.hpp>
#include <penstock/storage/local/paths.hpp>

#include <cuda_runtime_api.h>
#include <cufile.h>

#include <fcntl.h>
#include <sys/types.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>

namespace penstock::inline v0_1::detail {

/// What the library says of an error, which is a number beyond those of the system.
[[nodiscard]] inline std::string cufile_reason(CUfileOpError code) {
  return text({cufileop_status_error(code), " (cuFile ", static_cast<int>(code), ")"});
}

/// The library's driver, open while this lives, or the reason why nothing can be read directly.
class cufile_driver : unmovable {
 public:
  /// `modules` is the kernel's list of modules. Where there is no such file, as in some containers, the
  /// library reads it without end, so it is not asked. Found with cuFile 1.20.
  explicit cufile_driver(const char* modules) {
    int devices = 0;
    if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
      static_cast<void>(cudaGetLastError());  // the session says so if the device is used
      reason_ = "there is no CUDA device";
      return;
    }
    if (::access(modules, R_OK) != 0) {
      reason_ = text({"the kernel has no ", modules, ", in which cuFile would look for nvidia-fs"});
      return;
    }
    const CUfileError_t opened = cuFileDriverOpen();
    opened_ = opened.err == CU_FILE_SUCCESS;
    if (!opened_ && opened.err != CU_FILE_DRIVER_ALREADY_OPEN) {
      reason_ = cufile_reason(opened.err);
      return;
    }
    CUfileDrvProps_t facts{};
    const CUfileError_t asked = cuFileDriverGetProperties(&facts);
    if (asked.err != CU_FILE_SUCCESS)
      reason_ = cufile_reason(asked.err);
    else if (facts.nvfs.major_version == 0 && (facts.fflags >> p2p_supported & 1u) == 0)
      reason_ = "there is neither the nvidia-fs driver nor peer-to-peer access of the kernel's";
  }
  ~cufile_driver() {
    if (opened_) static_cast<void>(cuFileDriverClose());
  }

  [[nodiscard]] bool direct() const noexcept { return reason_.empty(); }
  /// Why not, without a full stop.
  [[nodiscard]] const std::string& reason() const noexcept { return reason_; }

 private:
  static constexpr unsigned p2p_supported = 4;  // CU_FILE_P2P_SUPPORTED, which older headers do not have
  bool opened_ = false;
  std::string reason_;
};

/// A file that the library knows.
using cufile_handle = std::unique_ptr<void, freed_by<cuFileHandleDeregister>>;

/// Empty if the library cannot read the file.
[[nodiscard]] inline cufile_handle make_cufile_handle(int opened) noexcept {
  CUfileDescr_t about{};
  about.type = CU_FILE_HANDLE_TYPE_OPAQUE_FD;
  about.handle.fd = opened;
  CUfileHandle_t made = nullptr;
  return cufile_handle(cuFileHandleRegister(&made, &about).err == CU_FILE_SUCCESS ? made : nullptr);
}

/// How rows were read; counted by any thread.
struct cufile_tally {
  std::atomic<std::uint64_t> direct{0}, host{0};
};

struct cufile_free {
  bool registered = false;
  void operator()(std::byte* memory) const noexcept {
    if (registered) static_cast<void>(cuFileBufDeregister(memory));
    static_cast<void>(cudaFree(memory));
  }
};

/// Device memory that files are read to, registered with the library. A copy within the device is fast, and
/// the library would make one itself for rows that begin in the middle of a block of the disk.
struct cufile_memory : std::unique_ptr<std::byte, cufile_free> {
  static constexpr cudaMemcpyKind kind = cudaMemcpyDeviceToDevice;
  cufile_memory() = default;
  explicit cufile_memory(std::size_t bytes) {
    void* made = nullptr;
    cuda_check(cudaMalloc(&made, bytes), "allocating room for a row of a file on the device");
    reset(static_cast<std::byte*>(made));
    // Without it the library reads all the same, through memory of its own.
    get_deleter().registered = cuFileBufRegister(made, bytes, 0).err == CU_FILE_SUCCESS;
  }
};
using cufile_room = cuda_halves<cufile_memory>;

/// Reads rows of files to device memory: directly where the driver and the file system can, otherwise through
/// pinned memory of the host.
class cufile_reader : unmovable {
 public:
  /// `modules` as for `cufile_driver`; null: without the driver.
  cufile_reader(int device, unsigned threads, const char* modules, std::shared_ptr<const located_files> files,
                cufile_tally& tally)
      : tally_(tally),
        device_(device),
        files_(std::move(files)),
        registered_(files_->files.size() > max_open ? 0 : files_->files.size()) {
    const cuda_on_device here(device);
    here.check();
    if (modules != nullptr) driver_ = std::make_unique<cufile_driver>(modules);
    for (unsigned i = 0; i < std::max(1u, threads); ++i) rooms_.push_back(std::make_unique<cufile_room>());
    lanes_ = std::make_unique<cuda_lanes>(device, threads);
  }
  ~cufile_reader() {
    const cuda_on_device here(device_);
    lanes_.reset();
    rooms_.clear();
    registered_.clear();
  }

  [[nodiscard]] bool direct() const noexcept { return driver_ != nullptr && driver_->direct(); }

  /// Reads the rows of a batch, of `bytes` each, to `output`; `stream` comes after it. `rows[i]` is the range
  /// of slot i; a slot without a sample becomes zeros. If it throws, nothing of it is in progress, except for
  /// what is on `stream`.
  template <class Rows, class Batch>
  void read(const Rows& rows, const Batch& batch, std::byte* output, std::size_t bytes, cudaStream_t stream) {
    lanes_->run(bytes == 0 ? 0 : batch.slots(), stream, [&](cuda_lane& lane, std::size_t i) {
      std::byte* const to = output + i * bytes;
      if (batch.holds(i)) return read_row(rows[i], lane, to, bytes);
      std::memset(lane.staging.room(bytes), 0, bytes);
      lane.staging.send(to, bytes, lane.stream.get());
    });
  }

 private:
  static constexpr std::uint64_t block = 4096;  // of the disk: direct reads begin and end with one
  static constexpr std::size_t max_open = 256;  // files; of more, each is open while a row of it is read

  /// A file of the run, opened at its first use.
  struct known_file {
    std::mutex lock;
    std::atomic<bool> opened{false};
    files::descriptor unbuffered;  // for the library
    files::descriptor buffered;    // for the host
    cufile_handle handle;
    std::atomic<bool> direct{false};
  };

  /// Opens a file, unless it is open.
  void open(known_file& file, const located_files::entry& entry) const {
    if (file.opened.load(std::memory_order_acquire)) return;
    const std::lock_guard hold(file.lock);
    if (file.opened.load(std::memory_order_relaxed)) return;
    files::descriptor buffered(files::open_quietly(entry.path));
    if (buffered.get() < 0) throw files::failure("open", entry.path, errno);
    const object_version found = files::version_of(buffered.get(), entry.path);
    if (found.size != entry.bytes || found.stamp != entry.stamp)
      throw error(errc::io, {"the file has ", found.size,
                             " bytes, and was changed after the plan was made, "
                             "when it had ",
                             entry.bytes, "; make the plan again"})
          .in_file(entry.path);
    if (direct()) {
      file.unbuffered = files::descriptor(::open(entry.path.c_str(), O_RDONLY | O_CLOEXEC | O_DIRECT));
      if (file.unbuffered.get() >= 0) file.handle = make_cufile_handle(file.unbuffered.get());
      file.direct = file.handle != nullptr;
    }
    file.buffered = std::move(buffered);
    file.opened.store(true, std::memory_order_release);
  }

  void read_row(const file_range& range, cuda_lane& lane, std::byte* to, std::size_t bytes) {
    if (range.file >= files_->files.size())
      throw error(errc::argument, {"a row is of file ", range.file, " of ", files_->files.size(),
                                   "; give cufile the source that the ranges are from"});
    const located_files::entry& entry = files_->files[range.file];
    std::optional<known_file> once;
    known_file& file = registered_.empty() ? once.emplace() : registered_[to_size(range.file)];
    open(file, entry);
    if (range.bytes != bytes || range.offset > entry.bytes || entry.bytes - range.offset < bytes)
      throw error(errc::argument, {"a row of ", range.bytes, " bytes where rows have ", bytes,
                                   "; give cufile the source that the ranges are from"})
          .in_file(entry.path)
          .at_offset(range.offset);
    if (file.direct.load(std::memory_order_relaxed)) {
      if (read_directly(file, entry, range, lane, to)) {
        tally_.direct.fetch_add(1, std::memory_order_relaxed);
        return;
      }
      file.direct.store(false, std::memory_order_relaxed);
    }
    read_by_host(file, entry, range, lane, to);
    tally_.host.fetch_add(1, std::memory_order_relaxed);
  }

  /// False if the library cannot; then it will not be asked for this file again.
  bool read_directly(const known_file& file, const located_files::entry& entry, const file_range& range,
                     cuda_lane& lane, std::byte* to) {
    cufile_room& room = *rooms_[lane.number];
    const std::uint64_t begin = range.offset / block * block;
    const auto before = to_size(range.offset - begin);
    const auto bytes = to_size(range.bytes), needed = before + bytes;
    const std::size_t whole = (needed + block - 1) / block * block;
    std::byte* const memory = room.room(whole);
    std::size_t done = 0;
    while (done < needed) {
      errno = 0;
      // The number of bytes; -1 with errno, or the library's error, negative.
      const ssize_t got =
          cuFileRead(file.handle.get(), memory + done, whole - done, static_cast<off_t>(begin + done), 0);
      if (got < -1) return false;
      if (got == -1 && errno == EINTR) continue;
      if (got == -1) throw failed(entry, range, errno);
      if (got == 0) throw cut(entry, begin + done);
      done += static_cast<std::size_t>(got);
    }
    room.send(to, bytes, lane.stream.get(), before);
    return true;
  }
  void read_by_host(const known_file& file, const located_files::entry& entry, const file_range& range,
                    cuda_lane& lane, std::byte* to) {
    const auto bytes = to_size(range.bytes);
    std::byte* const memory = lane.staging.room(bytes);
    for (std::size_t done = 0; done < bytes;) {
      const ssize_t got =
          ::pread(file.buffered.get(), memory + done, bytes - done, static_cast<off_t>(range.offset + done));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) throw failed(entry, range, errno);
      if (got == 0) throw cut(entry, range.offset + done);
      done += static_cast<std::size_t>(got);
    }
    lane.staging.send(to, bytes, lane.stream.get());
  }

  [[nodiscard]] static error failed(const located_files::entry& entry, const file_range& range, int code) {
    return files::failure("read", entry.path, code).at_offset(range.offset);
  }
  [[nodiscard]] static error cut(const located_files::entry& entry, std::uint64_t offset) {
    return error(errc::io, {"the file ends at ", offset, " and had ", entry.bytes,
                            " bytes when the plan was made; it was cut meanwhile"})
        .in_file(entry.path)
        .at_offset(offset);
  }

  cufile_tally& tally_;
  int device_;
  std::shared_ptr<const located_files> files_;
  std::unique_ptr<cufile_driver> driver_;  // outlives what it registered
  std::vector<known_file> registered_;
  std::vector<std::unique_ptr<cufile_room>> rooms_;
  std::unique_ptr<cuda_lanes> lanes_;  // last: its threads use the rest
};

}  // namespace penstock::inline v0_1::detail
