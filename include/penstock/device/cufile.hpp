// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#if !__has_include(<cufile.h>)
#error "penstock/device/cufile.hpp needs cuFile: link penstock::cufile"
#endif

#include <penstock/core/mistake.hpp>
#include <penstock/device/concepts.hpp>
#include <penstock/device/detail/cufile_reader.hpp>

#include <cuda_runtime_api.h>

namespace penstock::inline v0_1 {

namespace mistakes {

struct cufile_wants_ranges : about_element {
  static consteval void explain(auto reached) {
    static_assert(never<decltype(reached)>,
                  "penstock: cufile reads rows that a source has located, and this column has none; write "
                  "npy_ranges<float>(files) or raw_ranges<float>(files, shape) as the source, and let "
                  "nothing change its column");
  }
};

}  // namespace mistakes

/// Options of `cufile`.
struct cufile_options {
  /// Threads that read, each a row at a time; 0: half of the processor's, 8 at most.
  unsigned threads = 0;
  /// false: reads through the host's memory, without asking the library.
  bool direct = true;
  /// The kernel's list of modules. Where it is missing, as in some containers, the library is not asked,
  /// because it would not return.
  const char* modules = "/proc/modules";
};

/// How the rows of a plan were read, in all its runs.
struct cufile_counts {
  std::uint64_t direct = 0;  ///< from the disk to the device
  std::uint64_t host = 0;    ///< through memory of the host
};

namespace detail {

template <class View>
concept range_column = requires(const View& v, std::size_t i) {
  { v[i] } -> std::convertible_to<const file_range&>;
};

/// What all copies of an operation know.
struct cufile_account : cufile_tally {
  std::mutex lock;
  std::optional<std::string> reason;  // why nothing is read directly, or empty; once the driver was asked
};

/// `cufile` in a run.
template <class T>
class cufile_run {
 public:
  template <range_column View>
  using output = T;
  template <class View>
  using wrong_column_for = mistakes::cufile_wants_ranges;

  cufile_run(int device, unsigned threads, const char* modules,
             const std::shared_ptr<const located_files>& files, std::shared_ptr<cufile_account> account)
      : row_(files->row),
        account_(std::move(account)),
        reader_(std::make_shared<cufile_reader>(device, threads, modules, files, *account_)) {}

  template <class View>
  [[nodiscard]] extents shape(const View& /*column*/, const device_batch& batch) const {
    return row_.prepend(batch.slots());
  }
  template <class Stream, class View>
  void launch(Stream stream, const View& column, const device_batch& batch,
              const device_places& places) const {
    static_assert(std::is_same_v<Stream, cudaStream_t>,
                  "penstock: cufile works on devices of CUDA; write pin_and_copy(cuda{}) before on_device");
    if constexpr (std::is_same_v<Stream, cudaStream_t>)
      reader_->read(column, batch, places.output, to_size(row_.elements()) * sizeof(T), stream);
  }

 private:
  extents row_;
  std::shared_ptr<cufile_account> account_;  // before the reader, which counts in it
  std::shared_ptr<cufile_reader> reader_;
};

}  // namespace detail

/// What `cufile(...)` makes: an operation for `on_device`.
template <class T>
class cufile_operation {
 public:
  cufile_operation(std::shared_ptr<const located_files> files, const cufile_options& options)
      : files_(std::move(files)), options_(options), account_(std::make_shared<detail::cufile_account>()) {
    if (options_.threads == 0) options_.threads = detail::default_cuda_lanes();
  }

  [[nodiscard]] detail::cufile_run<T> connect(int device) const {
    return {device, options_.threads, options_.direct && reason().empty() ? options_.modules : nullptr,
            files_, account_};
  }
  /// A copy of the numbers, also while a run works.
  [[nodiscard]] cufile_counts counts() const noexcept { return {account_->direct, account_->host}; }
  /// Asks the library's driver, the first time, whether it can read directly.
  [[nodiscard]] std::string describe() const {
    const std::string why = reason();
    return detail::text({"cufile: ", options_.threads, " threads read ",
                         !options_.direct ? "through the host's memory, as they were told"
                         : why.empty()    ? "to the device directly"
                                          : "through the host's memory: ",
                         why});
  }

 private:
  [[nodiscard]] std::string reason() const {
    if (!options_.direct) return {};
    const std::lock_guard hold(account_->lock);
    if (!account_->reason) account_->reason = detail::cufile_driver(options_.modules).reason();
    return *account_->reason;
  }

  std::shared_ptr<const located_files> files_;
  cufile_options options_;
  std::shared_ptr<detail::cufile_account> account_;
};

/// Reads rows of local files straight to a device with GPUDirect Storage, the first operation of an
/// `on_device`: what `batch` gets is where the rows are.
///
///     const auto rows = npy_ranges<float>("features-{00..07}.npy");
///     const auto loader = rows | shuffle(seed(7)) | batch(256) | pin_and_copy(cuda{}) | on_device(cufile(rows));
///
/// In: a column of `file_range`, from the source that it is given: `npy_ranges` or `raw_ranges`. Out: on the
/// device, an array of the source's numbers, of shape (slots, row...), with the bytes that `npy_rows` would
/// put there.
/// Where the library's driver and the file system can, bytes go from the disk to the device. Where they
/// cannot, the same threads read them to pinned memory, from which they are copied; `describe()` says why,
/// and `counts()` how many rows went which way. A file that only the library refuses is read by the host.
/// Errors, when you ask for the batch, `errc::io` with file and offset: for a file that was cut or changed
/// after the plan was made, and for reads that fail; those of CUDA as `cuda` has them.
/// Cost: the consumer's thread waits until the threads have read the batch, ahead of its delivery. Rows are
/// read in whole blocks of 4 KiB to memory of the operation's own, two rows for each thread, and copied to
/// their place on the device. Each file is opened and registered at its first use, and keeps two
/// descriptors until the run ends; of more than 256 files, each is opened anew for each row.
/// Keeps all guarantees. Compiles with nvcc.
/// Source: cuFile API Reference Guide, CUDA 13.
template <class Source>
  requires requires(const Source& s) {
    { s.located() } -> std::convertible_to<std::shared_ptr<const located_files>>;
    typename Source::value_type;
  }
[[nodiscard]] cufile_operation<typename Source::value_type> cufile(const Source& rows,
                                                                   const cufile_options& options = {}) {
  return {rows.located(), options};
}

}  // namespace penstock::inline v0_1
