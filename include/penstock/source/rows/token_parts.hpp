// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/compiled.hpp>
#include <penstock/source/files/values_file.hpp>
#include <penstock/source/rows/megatron_index.hpp>
#include <penstock/storage/local/output_file.hpp>

#include <optional>
#include <vector>

/// Megatron's files while they are written; see `tokenised`.
namespace penstock::inline v0_1::detail {

/// What documents are made from, and as what.
struct documents_wanted {
  std::string prefix;  ///< of the files to be
  std::uint64_t dataset = 0;
  std::string_view name;
  token_type type;
};

/// The documents of a dataset until all of them are there: in parts, `PREFIX.penstock-part-N`, each of which
/// is written under a temporary name, flushed and renamed.
class token_parts : unmovable {
 public:
  /// Reads the parts that are there. Those which are damaged, made from something else, or behind one that is
  /// missing, are removed.
  token_parts(const documents_wanted& wanted, std::uint64_t part_tokens);

  /// The number of documents so far.
  [[nodiscard]] std::uint64_t documents() const noexcept { return lengths_.size(); }
  /// The length of each of them.
  [[nodiscard]] const std::vector<std::uint64_t>& lengths() const noexcept { return lengths_; }
  /// Appends a document, the bytes of its tokens.
  void add(bytes_view document);
  /// Completes the current part; drops it if a write has failed before.
  void finish();
  /// Writes the tokens of all parts into one file.
  void join(const std::string& path) const;

 private:
  [[nodiscard]] bool read_part(std::uint64_t number);

  documents_wanted wanted_;
  std::uint64_t part_tokens_;
  std::uint64_t parts_ = 0;  // that are complete
  std::vector<std::uint64_t> lengths_;
  std::optional<output_file> open_;
  bool writing_ = false;
  std::uint64_t first_ = 0;    // document of the open part
  std::uint64_t tokens_ = 0;   // of the open part
  std::uint64_t content_ = 0;  // a hash of them
};

/// Whether there is a part.
[[nodiscard]] bool has_token_parts(const std::string& prefix);
/// Removes all parts, the first one last.
void remove_token_parts(const std::string& prefix);

/// Makes the files of the documents of all parts: `PREFIX.bin`, their lengths in `values`, and last
/// `PREFIX.idx`, with one sequence for each document. An older index is removed first.
void write_documents(const documents_wanted& wanted, const std::string& values, const token_parts& parts);

enum class documents_fault { none, missing, damaged };
/// Whether `PREFIX.bin` and `PREFIX.idx` are there with documents of these lengths. Throws `errc::argument`
/// if their tokens are of another type.
[[nodiscard]] documents_fault check_documents(const documents_wanted& wanted, const values_file& lengths);
/// Throws `errc::argument` if there are files in the place of those to be that `tokenised` has not made.
void refuse_foreign_documents(const std::string& prefix);

}  // namespace penstock::inline v0_1::detail

#ifndef PENSTOCK_COMPILED
#include <penstock/source/rows/token_parts.ipp>
#endif
