// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/source/unpacked.hpp>

#include <penstock/core/error.hpp>
#include <penstock/source/files/parallel.hpp>
#include <penstock/source/files/unpacked_copy.hpp>
#include <penstock/storage/concepts.hpp>
#include <penstock/storage/file_names.hpp>

#include <sys/stat.h>

#include <atomic>
#include <cerrno>
#include <system_error>

namespace penstock::inline v0_1 {
namespace detail {

PENSTOCK_INLINE std::string copied_path(const std::string& packed, const unpacked_options& options,
                                        copy_work work) {
  const auto state_of = [&packed] {
    const auto found = version_of_file(packed);
    if (found) return *found;
    struct stat status {};
    if (::stat(packed.c_str(), &status) != 0)
      throw error(errc::io, {"cannot open the file: ", std::generic_category().message(errno)});
    throw error(errc::io, "this is not a regular file; pipes are read with webdataset_stream");
  };
  const object_version before = state_of();
  std::string copy = copy_path(packed, options.folder);
  if (copy_is_current(copy, {packed, before})) return copy;

  if (!work.is_packed(work.of)) return packed;
  if (const int code = make_folders(folder_of(copy)); code != 0) {
    throw error(errc::io,
                {"cannot make the folder for unpacked copies: ", std::generic_category().message(code),
                 "; name another folder in unpacked_options::folder"})
        .in_file(folder_of(copy));
  }
  const copy_lock lock(copy);
  if (lock.current({packed, before})) return copy;
  lock.begin();
  output_file output(copy);
  work.write(work.of, output);
  if (state_of() != before) throw error(errc::io, "the file was changed while it was unpacked; try again");
  lock.finish({before, output.commit(), ends_of_file(packed)});
  return copy;
}

PENSTOCK_INLINE std::string unpacked_path(const std::string& packed, const unpacked_options& options,
                                          unpacker_calls unpack, std::string_view reader,
                                          const stream_kind& kind) {
  struct stream_copy {
    shard_stream input;
    const std::string& packed;
    std::uint64_t limit;
    std::string_view reader;

    bool is_packed() {
      std::atomic<bool> unused{false};
      input.open(packed, unused, reader);
      return input.packed();
    }
    void write(output_file& output) {
      buffer some(1_MiB);
      try {
        while (const std::size_t got = input.read(some.span())) {
          if (got > limit - output.size()) {
            throw error(errc::limit, {"the file unpacks to more than the limit of ", limit,
                                      " bytes; raise unpacked_options::limit if it is meant to"})
                .at_offset(limit);
          }
          output.write(some.view().first(got));
        }
      } catch (error& e) {
        if (e.file().empty()) e.at_offset(input.offset());
        throw;
      }
    }
  };
  stream_copy copy{shard_stream(unpack, nullptr, kind), packed, options.limit, reader};
  return copied_path(packed, options,
                     {&copy, [](void* of) { return static_cast<stream_copy*>(of)->is_packed(); },
                      [](void* of, output_file& output) { static_cast<stream_copy*>(of)->write(output); }});
}

PENSTOCK_INLINE std::vector<std::string> unpacked_paths(const std::vector<std::string>& packed,
                                                        const unpacked_options& options, unpack_one one) {
  std::vector<std::string> copies(packed.size());
  for_each_in_parallel(packed.size(), options.threads, [&](std::size_t i) {
    const std::string path = files::local_path(packed[i]);
    copies[i] = in_file(path, [&] { return one(path, options); });
  });
  return copies;
}

}  // namespace detail
}  // namespace penstock::inline v0_1
