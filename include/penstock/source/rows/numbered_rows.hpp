// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/destination.hpp>
#include <penstock/core/projection.hpp>
#include <penstock/core/record.hpp>
#include <penstock/source/manifest.hpp>
#include <penstock/source/rows/row_source.hpp>

namespace penstock::inline v0_1::detail {

/// The numbers of the documents of a row's tokens, from 0: an array expression. Valid during the call that
/// delivers it.
template <class Files, class Shape>
class document_numbers : public Shape {
 public:
  using unfinished = void;
  using value_type = std::int32_t;

  document_numbers(Shape shape, const Files& files, const manifest::place& at, buffer& scratch) noexcept
      : Shape(shape), files_(&files), at_(at), scratch_(&scratch) {}

  void write_to(const destination<std::int32_t>& into) const {
    write_or_copy(
        into, [this](std::int32_t* to) { files_->number_documents(at_, to); }, [this] { return finish(); });
  }
  [[nodiscard]] tensor_view<const std::int32_t> finish() const {
    scratch_->resize_for_overwrite(to_size(this->shape().elements()) * sizeof(std::int32_t));
    auto* const values = reinterpret_cast<std::int32_t*>(scratch_->data());
    files_->number_documents(at_, values);
    return {values, this->shape()};
  }

 private:
  const Files* files_;
  manifest::place at_;
  buffer* scratch_;
};

/// Rows with the numbers of their tokens' documents. `Files` has `number_documents(place, to)`, and `Rows` is
/// what a run keeps for rows alone.
template <class Files, class Shape, class Rows>
class numbered_rows {
 public:
  struct worker : Rows::worker {
    buffer numbers;
  };
  using element = record<basic_field<name_of<"tokens">, typename Rows::element>,
                         basic_field<name_of<"document_ids">, document_numbers<Files, typename Shape::type>>>;

  numbered_rows(const shared<const Files>& files, const projection& used) noexcept
      : files_(files.get()), rows_(files, used.uses("tokens") ? projection() : projection::none()) {}

  [[nodiscard]] bool reads() const noexcept { return rows_.reads(); }
  [[nodiscard]] std::uint64_t bytes_per_sample() const noexcept { return rows_.bytes_per_sample(); }
  template <class Session>
  [[nodiscard]] element open(Session& session, const manifest::place& at, worker& w) const {
    return element(rows_.open(session, at, w), document_numbers<Files, typename Shape::type>(
                                                   Shape::of(files_->row), *files_, at, w.numbers));
  }
  [[nodiscard]] bool needs_confirm(const worker& w) const noexcept { return rows_.needs_confirm(w); }
  template <class Session>
  void add_context(error& e, Session& session, const manifest::place& at, const worker& w) const {
    rows_.add_context(e, session, at, w);
  }
  template <class Session>
  [[nodiscard]] std::string key(Session& session, const manifest::place& at) const {
    return rows_.key(session, at);
  }
  template <class Session, class Sink>
  void ranges(Session& session, object_id object, const manifest::place& at, Sink&& sink) const {
    rows_.ranges(session, object, at, sink);
  }

 private:
  const Files* files_;  // which the reader holds
  Rows rows_;
};

}  // namespace penstock::inline v0_1::detail
