// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/arrow_type.hpp>
#include <penstock/core/message.hpp>
#include <penstock/source/tables/flat_table.hpp>
#include <penstock/storage/concepts.hpp>
#include <penstock/storage/session_view.hpp>

#include <vector>

namespace penstock::inline v0_1::detail {

/// Where a message of Arrow's IPC lies in its file.
struct ipc_place {
  std::uint64_t begin = 0;  ///< of its metadata
  std::uint64_t size = 0;   ///< of its metadata
  std::uint64_t body = 0;   ///< where the buffers begin
  std::uint64_t body_size = 0;
};
struct ipc_batch : ipc_place {
  std::uint64_t rows = 0;
};
struct ipc_dictionary : ipc_place {
  std::int64_t id = 0;
  bool delta = false;      ///< adds to the one before it, instead of replacing it
  std::size_t before = 0;  ///< the batch from which on it counts
};

/// What an Arrow IPC file or stream has, but for its values.
struct ipc_file {
  arrow_type schema;        ///< a struct of all columns
  bool swapped = false;     ///< the byte order is not this machine's
  bool compressed = false;  ///< at least one batch or dictionary is
  std::vector<ipc_batch> batches;
  std::vector<ipc_dictionary> dictionaries;

  /// Reads the metadata of all messages: of a file by its footer, of a stream one after another. Either may
  /// stand at the end of a chunk of LitData. Throws errc::format, with the offset, for anything else.
  [[nodiscard]] static ipc_file read(session_view session, object_id object);
  /// The type of a dictionary's values; null if no column has one of this number.
  [[nodiscard]] const arrow_type* dictionary_type(std::int64_t id) const noexcept;
};

/// Whether these are the last 8 bytes of a chunk of LitData that ends with rows of Arrow.
[[nodiscard]] inline bool is_end_of_litdata_rows(bytes_view end) noexcept {
  return text_of(end) == std::string_view("LDARW01\0", 8);
}

/// The kinds of messages.
enum class ipc_kind : std::uint8_t { schema = 1, dictionary = 2, batch = 3 };

/// Throws errc::format.
[[noreturn, gnu::cold]] void bad_ipc(std::initializer_list<piece> what, std::uint64_t offset);

/// A message: its kind, and the table that says the rest.
struct ipc_message {
  flat_table header;
  std::uint8_t kind = 0;
  std::int16_t version = 0;
  std::int64_t body_size = 0;

  /// Throws errc::format if the metadata are none.
  explicit ipc_message(bytes_view metadata);
};

// Source: Arrow, "Serialization and interprocess communication (IPC)", format/{Message,Schema,File}.fbs.

/// The columns that a schema describes, as the children of a struct.
[[nodiscard]] arrow_type ipc_schema(const flat_table& schema, std::int16_t version);

}  // namespace penstock::inline v0_1::detail

#ifndef PENSTOCK_COMPILED
#include <penstock/source/tables/ipc_file.ipp>
#endif
