// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/compiled.hpp>
#include <penstock/core/projection.hpp>
#include <penstock/core/random.hpp>
#include <penstock/source/files/stored_files.hpp>
#include <penstock/source/manifest.hpp>
#include <penstock/source/rows/megatron_index.hpp>

#include <bit>
#include <vector>

/// The documents of Megatron's datasets, and how they are read.
namespace penstock::inline v0_1::detail {

/// The files of `megatron_documents`, and where their documents are.
struct document_files : known_files {
  /// Where each document begins, counted in the tokens of all files, and last their end.
  shared<const std::vector<std::uint64_t>> firsts;
  std::vector<std::uint64_t> file_firsts;  // by shard: the first token of the file
  std::size_t width = 0;                   // bytes of a token

  /// Reads the indexes.
  void read(storage_facts where, session_view session, token_type type);

  [[nodiscard]] std::uint64_t length(std::uint64_t document) const noexcept {
    return (*firsts)[to_size(document + 1)] - (*firsts)[to_size(document)];
  }
  [[nodiscard]] std::uint64_t offset(const manifest::place& at) const noexcept {
    return ((*firsts)[to_size(at.first + at.sample)] - file_firsts[at.shard]) * width;
  }
  /// Differs from that of windows of the same files.
  [[nodiscard]] std::uint64_t fingerprint() const noexcept { return mix64(shards.fingerprint() ^ mark); }
  [[nodiscard]] std::string describe() const;

 private:
  static constexpr std::uint64_t mark = 0x646f63756d656e74;
};

/// What a run keeps for documents: nothing but whether they are used.
template <class T, class Session>
class open_documents {
 public:
  using element = stored_array<T, given_shape, Session>;
  struct worker : values_worker<Session> {
    std::uint64_t offset = 0;  // of the current document
  };

  open_documents(const shared<const document_files>& files, const projection& used) noexcept
      : files_(files.get()), used_(!used.nothing()) {}

  /// Whether files are opened.
  [[nodiscard]] bool reads() const noexcept { return used_; }
  [[nodiscard]] std::uint64_t bytes_per_sample() const noexcept {
    return used_ ? files_->shards.payload() / files_->shards.samples() : 0;
  }
  [[nodiscard]] element open(Session& session, const manifest::place& at, worker& w) const {
    w.offset = files_->offset(at);
    return element({extents(files_->length(at.first + at.sample))}, session, files_->object(at.shard),
                   w.offset, w, std::endian::native != std::endian::little);
  }
  /// Prefetches what says where a document is.
  // Always inline, as prefetch_lines.
  [[gnu::always_inline]] void glance(const manifest::place& at) const noexcept {
    __builtin_prefetch(files_->firsts->data() + at.first + at.sample);
  }
  [[nodiscard]] file_stretch seen(const manifest::place& at) const noexcept {
    if (!used_) return {};
    return {files_->offset(at), files_->length(at.first + at.sample) * sizeof(T)};
  }
  [[nodiscard]] bool needs_confirm(const worker&) const noexcept { return used_; }
  void add_context(error& e, Session&, const manifest::place& at, const worker& w) const {
    e.in_file(files_->path(at.shard)).at_offset(w.offset);
  }
  /// The file and the number of the document in it: "text_document.bin:17".
  [[nodiscard]] std::string key(Session&, const manifest::place& at) const {
    return text({files_->path(at.shard), ":", at.sample});
  }
  template <class Sink>
  void ranges(Session& session, object_id object, const manifest::place& at, Sink&& sink) const {
    const std::uint64_t bytes = files_->length(at.first + at.sample) * sizeof(T);
    if (used_ && bytes != 0) sink(session, object, files_->offset(at), bytes);
  }

 private:
  const document_files* files_;  // which the reader holds
  bool used_;
};

/// Documents, for `record_files`.
template <class T>
struct document_layout {
  static constexpr std::string_view source_name = "megatron_documents";

  struct files : document_files {
    files(const document_layout&, storage_facts where, session_view session) {
      read(where, session, token_type::of<T>());
    }
  };
  template <class Session>
  using opened = open_documents<T, Session>;
};

}  // namespace penstock::inline v0_1::detail

#ifndef PENSTOCK_COMPILED
#include <penstock/source/rows/document_files.ipp>
#endif
