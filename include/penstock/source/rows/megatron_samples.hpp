// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/compiled.hpp>
#include <penstock/core/destination.hpp>
#include <penstock/core/projection.hpp>
#include <penstock/source/files/stored_files.hpp>
#include <penstock/source/megatron_gpt_options.hpp>
#include <penstock/source/rows/megatron_index.hpp>
#include <penstock/source/rows/row_source.hpp>

#include <algorithm>
#include <bit>
#include <vector>

/// The samples of Megatron's GPTDataset, and how they are read.
namespace penstock::inline v0_1::detail {

/// Where a sample begins: the place of its first sequence in the order, and the token in that.
struct megatron_start {
  std::uint32_t place = 0, offset = 0;

  friend bool operator==(const megatron_start&, const megatron_start&) = default;
};

/// The three indexes of a GPTDataset: the order of sequences, which Megatron calls documents, where samples
/// begin in it, and the order of samples.
/// Source: Megatron-LM, megatron/core/datasets/gpt_dataset.py and helpers.cpp.
struct megatron_order {
  std::vector<std::uint32_t> sequences;  // the document index
  std::vector<megatron_start> starts;    // the sample index; one more than samples
  std::vector<std::uint32_t> samples;    // the shuffle index
  std::uint64_t epochs = 1;
};

/// The order that Megatron makes for `[begin, end)` of the sequences. `firsts` has the first token of each,
/// and the end.
[[nodiscard]] megatron_order make_megatron_order(const std::vector<std::uint64_t>& firsts,
                                                 std::uint64_t begin, std::uint64_t end, std::uint64_t length,
                                                 bool extra, const megatron_gpt_options& options);

/// The files of a `megatron_gpt`, and where its samples are.
struct megatron_samples : known_files {
  megatron_gpt_options options;
  extents row;  // the tokens of a sample
  std::uint64_t length = 0, row_bytes = 0, tokens = 0;
  std::size_t width = 0;              // bytes of a token
  std::vector<std::uint64_t> firsts;  // by sequence: its first token; and the end
  megatron_order order;

  megatron_samples(std::uint64_t length, std::uint64_t targets, megatron_gpt_options chosen);

  /// Reads the index, and the cache if there is one.
  void read(storage_facts where, session_view session, token_type type);

  /// Calls `piece(first token, tokens)` for each piece of a sample.
  template <class Piece>
  void each_piece(std::uint64_t sample, Piece&& piece) const {
    megatron_start at = order.starts[order.samples[to_size(sample)]];
    for (std::uint64_t left = row.elements(); left != 0; ++at.place, at.offset = 0) {
      const std::size_t sequence = order.sequences[at.place];
      const std::uint64_t first = firsts[sequence] + at.offset;
      const std::uint64_t count = std::min(firsts[sequence + 1] - first, left);
      if (count != 0) piece(first, count);
      left -= count;
    }
  }
  /// The number of the piece of each token.
  void number_documents(const manifest::place& at, std::int32_t* to) const noexcept {
    std::int32_t number = 0;
    each_piece(at.sample,
               [&](std::uint64_t, std::uint64_t count) { to = std::fill_n(to, to_size(count), number++); });
  }
  [[nodiscard]] std::uint64_t fingerprint() const noexcept {
    return mix64(shards.fingerprint() ^ row.elements());
  }
  [[nodiscard]] std::string describe() const;

 private:
  void read_cache(storage_facts where, session_view session);
};

/// A sample whose pieces have not been read: an array expression. Valid during the call that delivers it.
template <class T, class Shape, class Session, class Worker>
class megatron_sample : public Shape {
 public:
  using unfinished = void;
  using value_type = T;

  megatron_sample(Shape shape, const megatron_samples& files, Session& session, std::uint64_t sample,
                  Worker& worker) noexcept
      : Shape(shape), files_(&files), session_(&session), worker_(&worker), sample_(sample) {}

  /// Reads the tokens into their destination.
  void write_to(const destination<T>& into) const {
    write_or_copy(
        into, [this](T* to) { write_dense(to); }, [this] { return finish(); });
  }
  /// A view of the tokens in the worker's scratch.
  [[nodiscard]] tensor_view<const T> finish() const {
    worker_->scratch.resize_for_overwrite(to_size(files_->row_bytes));
    T* const values = reinterpret_cast<T*>(worker_->scratch.data());
    write_dense(values);
    return {values, this->shape()};
  }

 private:
  void write_dense(T* into) const {
    auto* to = reinterpret_cast<std::byte*>(into);
    const object_id object = files_->object(0);
    files_->each_piece(sample_, [&](std::uint64_t first, std::uint64_t count) {
      const std::size_t bytes = to_size(count) * sizeof(T);
      worker_->offset = first * sizeof(T);
      if (const bytes_view there = worker_->find(*session_, object, worker_->offset, bytes); !there.empty())
        std::memcpy(to, there.data(), bytes);
      else
        session_->read(object, worker_->offset, {to, bytes});
      to += bytes;
    });
    if constexpr (std::endian::native != std::endian::little && sizeof(T) > 1)
      for (auto* at = reinterpret_cast<std::byte*>(into); at != to; at += sizeof(T))
        std::reverse(at, at + sizeof(T));
  }

  const megatron_samples* files_;
  Session* session_;
  Worker* worker_;
  std::uint64_t sample_;
};

/// What a run keeps for these samples: nothing but whether they are used.
template <class Files, class T, class Shape, class Session>
class megatron_rows {
 public:
  struct worker : values_worker<Session> {
    std::uint64_t offset = 0;  // of the current piece
  };
  using element = megatron_sample<T, typename Shape::type, Session, worker>;

  megatron_rows(const shared<const Files>& files, const projection& used) noexcept
      : files_(files.get()), used_(!used.nothing()) {}

  /// Whether files are opened.
  [[nodiscard]] bool reads() const noexcept { return used_; }
  [[nodiscard]] std::uint64_t bytes_per_sample() const noexcept { return used_ ? files_->row_bytes : 0; }
  [[nodiscard]] element open(Session& session, const manifest::place& at, worker& w) const noexcept {
    w.offset = 0;
    return element(Shape::of(files_->row), *files_, session, at.sample, w);
  }
  [[nodiscard]] bool needs_confirm(const worker&) const noexcept { return used_; }
  void add_context(error& e, Session&, const manifest::place& at, const worker& w) const {
    e.in_file(files_->path(at.shard)).at_offset(w.offset);
  }
  /// The file and Megatron's number of the sample: "text_document.bin:17".
  [[nodiscard]] std::string key(Session&, const manifest::place& at) const {
    return text({files_->path(at.shard), ":", at.sample});
  }
  template <class Sink>
  void ranges(Session& session, object_id object, const manifest::place& at, Sink&& sink) const {
    if (used_)
      files_->each_piece(at.sample, [&](std::uint64_t first, std::uint64_t count) {
        sink(session, object, first * sizeof(T), count * sizeof(T));
      });
  }

 private:
  const Files* files_;  // which the reader holds
  bool used_;
};

}  // namespace penstock::inline v0_1::detail

#ifndef PENSTOCK_COMPILED
#include <penstock/source/rows/megatron_samples.ipp>
#endif
