// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/fingerprint.hpp>
#include <penstock/core/to_size.hpp>
#include <penstock/core/token_value.hpp>
#include <penstock/source/record_files.hpp>
#include <penstock/source/rows/document_files.hpp>
#include <penstock/source/rows/token_files.hpp>
#include <penstock/storage/mapped_file.hpp>

namespace penstock::inline v0_1 {

/// The number of tokens of each document of a `megatron_documents`: values for `pack`, `batch_by`,
/// `bucket_by` and `subset`. Copies share the source's table, and may outlive the source. A look-up is two
/// loads. Threads: any number at once.
class document_lengths {
 public:
  using value_type = std::uint64_t;

  document_lengths(shared<const std::vector<std::uint64_t>> firsts, std::uint64_t dataset, std::string path)
      : firsts_(std::move(firsts)), dataset_(dataset), path_(std::move(path)) {}

  /// The number of documents.
  [[nodiscard]] std::uint64_t size() const noexcept { return firsts_->size() - 1; }
  /// The length of document i, which must be below `size()`.
  [[nodiscard]] std::uint64_t operator[](std::uint64_t i) const noexcept {
    const std::size_t at = detail::to_size(i);
    return (*firsts_)[at + 1] - (*firsts_)[at];
  }
  /// The fingerprint of the source.
  [[nodiscard]] std::uint64_t dataset() const noexcept { return dataset_; }
  /// Covers the values, as that of the source does.
  [[nodiscard]] std::uint64_t fingerprint() const noexcept {
    class fingerprint h;
    h.add("document_lengths", dataset_, size());
    return h.value();
  }
  [[nodiscard]] std::string describe() const { return "document lengths"; }
  /// The first of the indexes that they are from.
  [[nodiscard]] const std::string& path() const noexcept { return path_; }

 private:
  shared<const std::vector<std::uint64_t>> firsts_;
  std::uint64_t dataset_;
  std::string path_;
};

/// The source that `megatron_documents` makes.
template <token_value T, storage Storage>
class megatron_document_source
    : public record_files<detail::document_layout<T>, Storage, megatron_document_source<T, Storage>> {
 public:
  explicit megatron_document_source(Storage where)
      : megatron_document_source::record_files({}, std::move(where)) {}

  /// The number of tokens of all documents.
  [[nodiscard]] std::uint64_t tokens() const noexcept { return this->known().firsts->back(); }
  /// The number of tokens of each document, for `pack` and others that choose samples by their lengths.
  [[nodiscard]] document_lengths lengths() const {
    return {this->known().firsts, this->fingerprint(),
            detail::megatron_prefix(this->manifest().shards().front().name) + ".idx"};
  }
};

/// The documents of Megatron's datasets, pairs of `PREFIX.bin` and `PREFIX.idx`, one sample per document, for
/// `pack`: the lengths are in the index, so that nothing has to be derived.
///
///     auto docs = megatron_documents<std::uint16_t>("openwebtext_text_document");
///     auto loader = docs | shuffle(seed(7)) | shard(rank, world_size) |
///                   pack(docs.lengths(), 4096, {.overlong = overlong::split}) | batch(8);
///
/// In: a pattern of prefixes, with or without one of the extensions, which are `mapped_file`, or any storage
/// that names both files of each pair; all of them form one dataset. Out: an array expression of a document's
/// tokens, a view of the mapping until it is written to its slot. A document of several sequences is all of
/// them, one behind the other; one without tokens is a sample, too.
/// `tokenised` writes such files.
/// Kind: a source; indexed, deterministic, resumable, elastic, lockstep. Making the plan reads each index
/// once, and keeps 8 bytes for each document.
/// Cost per sample: a binary search among the files and one copy of the document, or one read if the storage
/// has no views; no allocation. In a shuffled order the first 4 KiB of mapped documents are prefetched.
/// Threads: any number at once.
/// Throws `errc::format`, with file and offset, as `megatron_tokens` does; `errc::argument` if there is no
/// document, and for a storage that names only one file of a pair; `errc::io`, also for a file that was
/// changed after the plan was made. For a file that shrinks while it is mapped see `mapped_file_options`.
/// Source: Megatron-LM, megatron/core/datasets/indexed_dataset.py.
template <token_value T, storage Storage>
[[nodiscard]] megatron_document_source<T, Storage> megatron_documents(Storage where) {
  return megatron_document_source<T, Storage>(std::move(where));
}
template <token_value T>
[[nodiscard]] megatron_document_source<T, mapped_file> megatron_documents(std::string_view pattern) {
  return megatron_documents<T>(mapped_file(detail::megatron_names(pattern)));
}

}  // namespace penstock::inline v0_1
