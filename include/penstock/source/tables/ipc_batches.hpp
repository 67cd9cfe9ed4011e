// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/base/owned.hpp>
#include <penstock/source/tables/arrow_union.hpp>
#include <penstock/source/tables/ipc_file.hpp>
#include <penstock/source/tables/table_source.hpp>

namespace penstock::inline v0_1::detail {

/// The files of a dataset of Arrow IPC, as part of a plan.
struct ipc_files : table_files {
  std::vector<ipc_file> files;             // by object
  std::vector<std::size_t> batch_in;       // by shard: which batch of its file it is
  arrow_type schema;                       // of all files together
  std::vector<column_conflict> conflicts;  // what cannot be read of it
  /// The columns that a file has. `places`: where all columns are among them, `count` for one that is not;
  /// empty if they are the same.
  struct own_columns {
    std::size_t count;
    std::vector<std::size_t> places;
  };
  std::vector<own_columns> own;  // by object

  /// Reads the metadata of all files of a storage. Throws errc::format for what is no Arrow IPC. The columns
  /// are those of all files together; see `column_union`.
  ipc_files(storage_facts where, session_view session);

  [[nodiscard]] std::string describe() const {
    return described("arrow_ipc", files.size(), text({batch_in.size(), " batches"}), fields());
  }
  /// The columns that are shown, and their types.
  [[nodiscard]] std::vector<const arrow_type*> types() const;
  [[nodiscard]] std::vector<source_field> fields() const;
  /// Only these columns are shown. Throws errc::argument, with those that are there.
  void show(const std::vector<std::string>& names);
};

/// The batches of a run. What a session shows in place is looked up once and kept; batches that must be read,
/// unpacked or turned to this machine's byte order are kept up to a limit.
class ipc_batches {
 public:
  static constexpr bool in_place = true;  // some of them
  /// Unpacks a buffer, and returns how many bytes that made; null if there is no unpacker for its format.
  using unpack_call = std::optional<std::size_t> (*)(bytes_view packed, mutable_bytes into,
                                                     std::string_view format);

  ipc_batches(shared<const ipc_files> files, const projection& used, batch_limits limits, unpack_call unpack);
  ipc_batches(ipc_batches&&) noexcept;
  ~ipc_batches();

  /// A batch; `held` keeps it alive if nothing else does.
  [[nodiscard]] const arrow_batch& get(session_view session, std::size_t shard,
                                       shared<const arrow_batch>& held) const;
  /// A batch in place; null if it is not there, or may go away.
  [[nodiscard]] const arrow_batch* find(std::size_t shard) const noexcept;
  /// One that may go away; empty if it is not in memory.
  [[nodiscard]] shared<const arrow_batch> find_kept(std::size_t shard) const noexcept;

 private:
  struct state;
  owned<state> state_;
};

}  // namespace penstock::inline v0_1::detail

#ifndef PENSTOCK_COMPILED
#include <penstock/source/tables/ipc_batches.ipp>
#endif
