// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/source/tables/arrow_import.hpp>

#include <limits>
#include <system_error>

// Source: Arrow, "The Arrow C data interface" and "The Arrow C stream interface".
namespace penstock::inline v0_1::detail {

[[noreturn, gnu::cold]] PENSTOCK_INLINE void bad_arrow(std::initializer_list<piece> what) {
  throw error(errc::argument, what);
}

PENSTOCK_INLINE arrow_type import_arrow_field(const arrow_abi::schema& given, std::size_t depth) {
  constexpr std::size_t deepest = 64;
  const std::string_view name = given.name == nullptr ? "" : given.name;
  if (given.release == nullptr || given.format == nullptr)
    bad_arrow({"the schema of the column '", name, "' was released already"});
  if (depth > deepest) bad_arrow({"columns are nested deeper than ", deepest, " levels"});
  arrow_type made = arrow_type::of_format(given.format);
  made.name = name;
  if (given.n_children < 0 || (given.n_children != 0 && given.children == nullptr))
    bad_arrow({"the schema of the column '", name, "' has no children where it says so"});
  for (std::int64_t i = 0; i < given.n_children; ++i) {
    if (given.children[i] == nullptr) bad_arrow({"a child of the column '", name, "' is a null pointer"});
    made.children.push_back(import_arrow_field(*given.children[i], depth + 1));
  }
  if (made.is_list() && made.children.size() != 1)
    bad_arrow({"the list '", name, "' has ", made.children.size(), " children instead of one"});
  if (given.dictionary != nullptr) {
    if (made.number == arrow_number::none || is_real(made.number))
      bad_arrow({"the dictionary of the column '", name, "' is numbered by no whole numbers"});
    made.dictionary.push_back(import_arrow_field(*given.dictionary, depth + 1));
    made.dictionary.front().name = name;
  }
  return made;
}

PENSTOCK_INLINE arrow_type import_arrow_schema(const arrow_abi::schema& given) {
  arrow_type made = import_arrow_field(given, 0);
  if (made.layout != arrow_layout::record || !made.dictionary.empty())
    bad_arrow({"the stream has values of type ", made.text(),
               ", and rows of columns are read: make a table of them"});
  return made;
}

PENSTOCK_INLINE arrow_column import_arrow_column(const arrow_abi::array& given, const arrow_type& type) {
  arrow_column made;
  made.type = &type;
  const auto refuse = [&](std::string_view what) {
    bad_arrow({"the column '", type.name, "' of a batch ", what});
  };
  if (given.length < 0 || given.offset < 0 ||
      given.offset > std::numeric_limits<std::int64_t>::max() - given.length)
    refuse("has a negative length or offset");
  made.length = static_cast<std::uint64_t>(given.length);
  made.offset = static_cast<std::uint64_t>(given.offset);
  if (type.layout == arrow_layout::other) return made;
  using enum arrow_layout;
  const bool is_views = type.layout == views, is_bytes = type.is_bytes() && !is_views;
  const bool is_list_view = type.layout == list_view32 || type.layout == list_view64;
  const std::int64_t wanted = type.layout == nothing                               ? 0
                              : type.layout == record || type.layout == fixed_list ? 1
                              : type.is_bytes() || is_list_view                    ? 3
                                                                                   : 2;
  if (is_views ? given.n_buffers < wanted : given.n_buffers != wanted)
    refuse("has another number of buffers than its type");
  if (wanted != 0 && given.buffers == nullptr) refuse("has no buffers");
  const auto buffer = [&](std::int64_t i) { return static_cast<const std::byte*>(given.buffers[i]); };
  const auto needed = [&](std::int64_t i, std::string_view lack) {
    if (given.length != 0 && buffer(i) == nullptr) refuse(lack);
    return buffer(i);
  };
  if (wanted != 0 && given.null_count != 0) made.validity = buffer(0);
  if (is_list_view) made.sizes = needed(2, "has no sizes");
  if (is_bytes || (type.is_list() && type.layout != fixed_list)) made.offsets = needed(1, "has no offsets");
  if (is_bytes) {
    made.values = buffer(2);
    made.bytes = made.values == nullptr ? 0 : std::numeric_limits<std::uint64_t>::max();
  } else if (is_views || type.layout == bits || (type.layout == fixed && type.width != 0)) {
    made.values = needed(1, "has no values");
  }
  if (is_views) {
    const auto* const sizes = static_cast<const std::int64_t*>(given.buffers[given.n_buffers - 1]);
    for (std::int64_t i = 2; i < given.n_buffers - 1; ++i) {
      if (sizes == nullptr || sizes[i - 2] < 0) refuse("does not say how long its buffers are");
      made.buffers.emplace_back(buffer(i), static_cast<std::size_t>(sizes[i - 2]));
    }
  }
  if (!type.dictionary.empty()) {
    if (given.dictionary == nullptr) refuse("has no dictionary");
    made.children.push_back(import_arrow_column(*given.dictionary, type.dictionary.front()));
    made.dictionary.push_back(made.children.data());
    return made;
  }
  if (given.n_children < 0 || static_cast<std::uint64_t>(given.n_children) != type.children.size() ||
      (given.n_children != 0 && given.children == nullptr))
    refuse("has another number of children than its type");
  made.children.reserve(type.children.size());
  for (std::size_t i = 0; i < type.children.size(); ++i) {
    if (given.children[i] == nullptr) refuse("has a child that is a null pointer");
    made.children.push_back(import_arrow_column(*given.children[i], type.children[i]));
    if (type.layout == arrow_layout::record && made.children.back().length < made.offset + made.length)
      refuse("has a child of fewer rows");
  }
  return made;
}

PENSTOCK_INLINE shared<const imported_batch> import_arrow_batch(arrow_abi::held<arrow_abi::array> given,
                                                                shared<const imported_schema> schema) {
  shared<imported_batch> made(new imported_batch);
  made->schema = std::move(schema);
  made->array = std::move(given);
  made->root = import_arrow_column(*made->array, made->schema->root);
  made->leaves = arrow_leaves(made->root);
  return made;
}

PENSTOCK_INLINE std::string_view arrow_stream_row::key() const {
  key_.clear();
  append(key_, {"batch ", at_.shard, ", row ", at_.sample});
  return key_;
}

PENSTOCK_INLINE bool arrow_stream_reader::next(arrow_stream_row& e) {
  while (!batch_ || row_ == batch_->root.length)
    if (!next_batch()) return false;
  if (e.batch_ != batch_) e.batch_ = batch_;
  e.at_ = {batches_, row_++};
  return true;
}

PENSTOCK_INLINE void arrow_stream_reader::rewind(std::uint64_t /*epoch*/) {
  if (!started_) return;
  stream_ = {};
  batch_ = nullptr;
  batches_ = row_ = 0;
  started_ = ended_ = false;
}

PENSTOCK_INLINE void arrow_stream_reader::seek(std::uint64_t epoch, source_mark place) {
  rewind(epoch);
  while (batches_ != place.shard || !batch_)
    if (!next_batch()) break;
  if (!batch_ ? place != source_mark{batches_, 0} : place.sample > batch_->root.length)
    throw error(errc::state, {"the stream has no row ", place.sample, " in a batch ", place.shard,
                              ", where the state says that a run stopped: it is another stream"});
  row_ = place.sample;
}

PENSTOCK_INLINE bool arrow_stream_reader::next_batch() {
  if (ended_) return false;
  if (!started_) begin();
  if (batch_) ++batches_;
  row_ = 0;
  batch_ = nullptr;
  arrow_abi::held<arrow_abi::array> found;
  if (const int code = stream_->get_next(stream_.get(), found.get()); code != 0) fail(code, "next batch");
  if (found.empty()) {
    ended_ = true;
    return false;
  }
  try {
    batch_ = import_arrow_batch(std::move(found), schema_);
  } catch (error& e) {
    ended_ = true;
    e.for_key(text({"batch ", batches_}));
    throw;
  }
  return true;
}

PENSTOCK_INLINE void arrow_stream_reader::begin() {
  maker_.make(maker_.kept.get(), stream_.get());
  if (stream_.empty() || stream_->get_schema == nullptr || stream_->get_next == nullptr)
    bad_arrow(
        {"the stream was released already, or used by another reader: give arrow_stream one that was not, "
         "or a function that makes one"});
  started_ = true;
  arrow_abi::held<arrow_abi::schema> said;
  if (const int code = stream_->get_schema(stream_.get(), said.get()); code != 0) fail(code, "schema");
  schema_.reset(new const imported_schema(import_arrow_schema(*said)));
}

PENSTOCK_INLINE void arrow_stream_reader::fail(int code, std::string_view doing) {
  const char* const said =
      stream_->get_last_error == nullptr ? nullptr : stream_->get_last_error(stream_.get());
  const std::string why =
      said != nullptr && *said != '\0' ? said : std::error_code(code, std::generic_category()).message();
  ended_ = true;
  throw error(errc::io, {"the stream failed to give its ", doing, ": ", why});
}

}  // namespace penstock::inline v0_1::detail
