// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/source/record_format.hpp>
#include <penstock/storage/concepts.hpp>
#include <penstock/storage/fetched.hpp>

#include <limits>

namespace penstock::inline v0_1::detail {

/// The type of a field, which some formats call its encoding.
template <class Field>
[[nodiscard]] std::string_view type_of(const Field& field) noexcept {
  if constexpr (requires { field.type; })
    return field.type;
  else
    return field.encoding;
}

template <class Index>
struct place_type {
  using type = value_place;
};
template <places_values Index>
struct place_type<Index> {
  using type = decltype(std::declval<const Index&>().place(std::uint64_t{}, std::size_t{}));
};

/// The state of one worker, and its current record. Values are shown in place where the session can;
/// elsewhere a record that says itself where its values are is read as a whole if it is small, and all other
/// values one by one, straight into their destinations.
template <class Session, class Files>
class record_worker : public fetch_link<Session> {
  using index_type = typename Files::index_type;
  static constexpr bool divided = !places_values<index_type>;

 public:
  using place_type = typename detail::place_type<index_type>::type;
  static constexpr bool views = all_mapped<Session>();

  /// Moves to another file.
  void enter(const Files& files, std::size_t shard, const index_type& index) {
    files_ = &files;
    index_ = &index;
    shard_ = shard;
    const auto& fields = files.fields_of(shard);
    if (fields_ == &fields) return;
    fields_ = &fields;
    values_.assign(fields.size(), {});
    rooms_.resize(fields.size());
    if constexpr (divided) places_.resize(fields.size());
  }
  /// Moves to a record of the file; with `unread`, none of its values may be asked for.
  void begin(Session& session, std::uint64_t record, [[maybe_unused]] bool unread) {
    session_ = &session;
    record_ = record;
    touched_ = nothing;
    needs_confirm_ = views;
    ++generation_;
    if constexpr (divided) {
      whole_ = {};
      if (unread)
        places_.assign(places_.size(), {});  // they are unknown, and look empty
      else
        divide();
    }
  }
  /// Whether bytes were shown in place, which only `confirm` makes sure of.
  [[nodiscard]] bool needs_confirm() const noexcept { return needs_confirm_; }

  [[nodiscard]] const place_type& place(std::size_t field) {
    if constexpr (divided) {
      return places_[field];
    } else {
      value& one = values_[field];
      if (one.found != generation_) {
        // Made where it stays: a copy of what was just written in narrower pieces would wait for the stores.
        ::new (static_cast<void*>(&one.place)) place_type(index_->place(record_, field));
        one.found = generation_;
      }
      return one.place;
    }
  }
  void read(std::size_t field, mutable_bytes into) {
    const place_type& where = touch(field);
    if (into.empty()) return;
    if (const bytes_view there = shown(where); !there.empty())
      std::memcpy(into.data(), there.data(), into.size());
    else
      session_->read(object(), where.begin, into);
  }
  [[nodiscard]] bytes_view finish(std::size_t field) {
    const place_type& where = touch(field);
    if (where.size == 0) return {};
    if (const bytes_view there = shown(where); !there.empty()) return there;
    value& one = values_[field];
    buffer& room = rooms_[field];
    if (one.read != generation_) {
      room.resize_for_overwrite(to_size(where.size));
      session_->read(object(), where.begin, room.span());
      one.read = generation_;
    }
    return room.view();
  }

  void check_codec(std::size_t field, std::string_view codec)
    requires requires(const Files& files) { files.check_codec(files.fields_of(0)[field], codec); }
  {
    (void)touch(field);  // where an error of the codec belongs
    std::string_view& checked = values_[field].codec;
    if (checked.data() == codec.data() && checked.size() == codec.size()) return;
    Files::check_codec((*fields_)[field], codec);
    checked = codec;
  }
  [[nodiscard]] const auto& fields() const noexcept { return *fields_; }
  [[nodiscard]] std::string_view path() const { return files_->path(shard_); }
  [[nodiscard]] std::string_view key() const {
    key_.clear();
    if constexpr (requires { files_->append_key(key_, shard_, record_); })
      files_->append_key(key_, shard_, record_);
    else
      files_->append_key(key_, shard_, *index_, record_);
    return key_;
  }
  /// Adds file, offset and key to an error.
  void add_context(error& e) const {
    // An offset without a file comes from a codec and counts from the value's first byte.
    if (e.file().empty() && e.offset() && touched_ != nothing) e.within("the value", touched_);
    e.in_file(files_->path(shard_)).for_key(key());
    if (touched_ != nothing)
      e.at_offset(touched_);
    else if constexpr (divided)
      e.at_offset(index_->record(record_).begin);
  }

 private:
  static constexpr std::uint64_t nothing = std::numeric_limits<std::uint64_t>::max();
  static constexpr std::uint64_t direct = 32_KiB;

  struct value {
    place_type place;
    std::uint64_t found = 0, read = 0;  // in which generation
    std::string_view codec;             // that was checked last
  };

  [[nodiscard]] object_id object() const noexcept { return static_cast<object_id>(shard_); }
  const place_type& touch(std::size_t field) {
    touched_ = nothing;
    const place_type& where = place(field);
    if (where.in_memory == nullptr) touched_ = where.begin;
    return where;
  }
  void divide() {
    const value_place all = index_->record(record_);
    whole_begin_ = touched_ = all.begin;
    whole_ = in_session(all.begin, all.size);
    bytes_view head = whole_;
    if (whole_.empty()) {
      const std::uint64_t needed = index_->head();
      const std::uint64_t first = all.size < direct || needed > all.size ? all.size : needed;
      head_.resize_for_overwrite(to_size(first));
      if (first != 0) session_->read(object(), all.begin, head_.span());
      head = head_.view();
      if (first == all.size) whole_ = head;
    }
    index_->divide(record_, head, places_);
    for (const value_place& one : places_) {
      const std::uint64_t before = one.begin - all.begin;
      if (one.in_memory == nullptr && one.size != 0 && (before > all.size || one.size > all.size - before))
        throw error(errc::format, "a value lies outside its record");
    }
    touched_ = nothing;
  }
  /// The bytes of a value where no read is needed.
  [[nodiscard]] bytes_view shown(const place_type& where) {
    if (where.in_memory != nullptr) return {where.in_memory, to_size(where.size)};
    if constexpr (divided)
      return whole_.empty() ? whole_
                            : whole_.subspan(to_size(where.begin - whole_begin_), to_size(where.size));
    else
      return in_session(where.begin, where.size);
  }
  [[nodiscard]] bytes_view in_session(std::uint64_t begin, std::uint64_t size) {
    if constexpr (mapped_session<Session>)
      if (is_mapped(*session_, object())) {
        if constexpr (!views) needs_confirm_ = true;
        return session_->view(object(), begin, size);
      }
    return this->find(*session_, object(), begin, size);
  }

  Session* session_ = nullptr;
  const Files* files_ = nullptr;
  const index_type* index_ = nullptr;
  const std::remove_cvref_t<decltype(std::declval<const Files&>().fields_of(0))>* fields_ = nullptr;
  std::size_t shard_ = 0;
  std::uint64_t record_ = 0;
  std::uint64_t generation_ = 0;
  std::uint64_t touched_ = nothing;  // the offset of the bytes requested last
  bool needs_confirm_ = false;
  std::vector<value> values_;  // by field
  std::vector<buffer> rooms_;  // by field
  // of a record that says itself where its values are
  std::vector<value_place> places_;
  bytes_view whole_;  // empty: values are read one by one
  std::uint64_t whole_begin_ = 0;
  buffer head_;
  mutable std::string key_;
};

/// A value of a field: bytes that know their type. Valid during the call that delivers its record.
template <class Worker>
class stored_value {
 public:
  using unfinished = void;
  /// Views of mapped files are valid as long as the run, so holding one needs no copy.
  static constexpr bool lasting = Worker::views;

  stored_value() = default;
  stored_value(Worker& worker, std::size_t field) noexcept : worker_(&worker), field_(field) {}

  [[nodiscard]] std::uint64_t size() const { return place().size; }
  /// The offset of the bytes in the file; 0 if they are in the index.
  [[nodiscard]] std::uint64_t offset() const { return place().begin; }
  void read_into(mutable_bytes into) const {
    if (into.size() != size())
      throw error(errc::argument, {"a value of ", size(), " bytes was to be read into ", into.size()});
    worker_->read(field_, into);
  }
  [[nodiscard]] bytes_view finish() const { return worker_->finish(field_); }
  /// The field's type, as the format writes it.
  [[nodiscard]] std::string_view encoding() const noexcept { return type_of(worker_->fields()[field_]); }
  [[nodiscard]] const typename Worker::place_type& place() const { return worker_->place(field_); }
  /// Throws `errc::format` if a codec of this name cannot read the field.
  void check_codec(std::string_view codec) const
    requires requires(Worker& worker, std::size_t field) { worker.check_codec(field, codec); }
  {
    worker_->check_codec(field_, codec);
  }

 private:
  Worker* worker_ = nullptr;
  std::size_t field_ = 0;
};

/// An open sample of a file of records: a member for each field.
template <class Worker>
class record_sample {
 public:
  using is_open_sample = void;
  using blob_type = stored_value<Worker>;

  explicit record_sample(Worker& worker) noexcept : worker_(&worker) {}

  [[nodiscard]] std::string_view key() const { return worker_->key(); }
  [[nodiscard]] std::string_view url() const { return worker_->path(); }
  [[nodiscard]] std::size_t size() const noexcept { return worker_->fields().size(); }
  [[nodiscard]] std::string_view name(std::size_t i) const noexcept { return worker_->fields()[i].name; }
  [[nodiscard]] blob_type member(std::size_t i) const noexcept { return {*worker_, i}; }

 private:
  Worker* worker_;
};

}  // namespace penstock::inline v0_1::detail
