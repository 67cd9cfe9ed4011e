// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/source/concepts.hpp>
#include <penstock/storage/concepts.hpp>
#include <penstock/storage/session_view.hpp>

/// What a format of files of records is, for `record_files`.
namespace penstock::inline v0_1 {

/// A field of a format's records. `in_index`: its values are part of the index, so that nothing is read.
struct record_field {
  std::string name, type;
  bool in_index = false;
  friend bool operator==(const record_field&, const record_field&) = default;
};

/// Where a value of a record is: bytes of its file, or, of a field that is in the index, bytes in memory that
/// live as long as the index. A format may derive from it to tell its codecs more.
struct value_place {
  std::uint64_t begin = 0, size = 0;
  const std::byte* in_memory = nullptr;
};

/// An index that knows where each value is: `place(record, field)` returns a `value_place`, or throws.
template <class I>
concept places_values = requires(const I& index, std::uint64_t record, std::size_t field) {
  { index.place(record, field) } -> std::derived_from<value_place>;
};
/// An index that knows where records are, which say themselves where their values are: `record(i)` is the
/// place of the record, and `divide(i, bytes, places)` finds the values in its first bytes: at least the
/// `head()` that this needs, or all of a shorter record. A value outside its record is an error. Such records
/// are read as a whole below 32 KiB, and their values one by one above.
template <class I>
concept divides_records =
    requires(const I& index, std::uint64_t record, bytes_view bytes, std::span<value_place> places) {
      { index.record(record) } -> std::same_as<value_place>;
      { index.head() } -> std::convertible_to<std::uint64_t>;
      index.divide(record, bytes, places);
    };

/// A list of fields that an index keeps, such as `const std::vector<record_field>&`.
template <class L>
concept listed_fields = std::is_lvalue_reference_v<L> && requires(const L fields, std::size_t field) {
  { fields.size() } -> std::convertible_to<std::size_t>;
  { fields[field] } -> std::convertible_to<const record_field&>;
  { fields == fields } -> std::convertible_to<bool>;
};

/// What a format knows about a file: an object that is kept as long as the plan. Any number of threads may
/// call its members at once. Members marked "optional" may be missing.
///
///   records()               how many there are
///   fields()                a reference to a list of `record_field`, the same in all files
///   place(record, field)    see `places_values`; or record, head and divide, see `divides_records`
///   key(record)             optional: a text; without it a record's key is "file:17"
///   mark()                  optional: a hash that changes when the dataset does, for the fingerprint; without it the
///                           places of all values are hashed
///   payload()               optional: the bytes of its values; without it the size of the file
///   prefetch(record)        optional: prefetches the memory that `place` will look at
template <class I>
concept record_index = (places_values<I> || divides_records<I>)&&requires(const I& index) {
  { index.records() } -> std::convertible_to<std::uint64_t>;
  { index.fields() } -> listed_fields;
};

/// A format of files of records: a value that says how the index of a file is read.
///
///   source_name                      its name in messages
///   index                            see `record_index`
///   read_index(session, object)      reads it; throws `errc::format`, with the offset, for what is none. What lies in
///                                    another file is part of the value
///   mark                             optional: a number that is mixed into the fingerprint; without it a hash of the name
///   check_codec(field, codec)        optional, static: throws if a codec of that name cannot read a field
template <class F>
concept record_format =
    std::copy_constructible<F> && requires(const F& format, session_view session, object_id object) {
      { F::source_name } -> std::convertible_to<std::string_view>;
      requires record_index<typename F::index>;
      { format.read_index(session, object) } -> std::same_as<typename F::index>;
    };

namespace detail {

/// A format that says itself how its files are kept and opened.
template <class F>
concept own_layout = requires { typename F::files; };

/// Says what a format lacks, in one sentence.
template <class F>
consteval bool explain_format() {
  if constexpr (own_layout<F>)
    return true;
  else if constexpr (!requires { typename F::index; })
    static_assert(
        requires { typename F::index; },
        "penstock: a record_format needs a type `index`, what is kept of a file");
  else if constexpr (!places_values<typename F::index> && !divides_records<typename F::index>)
    static_assert(places_values<typename F::index>,
                  "penstock: the index of a record_format needs `value_place place(std::uint64_t record, "
                  "std::size_t field) const`, or record, head and divide; see divides_records");
  else if constexpr (!record_index<typename F::index>)
    static_assert(record_index<typename F::index>,
                  "penstock: the index of a record_format needs `std::uint64_t records() const`, and `const "
                  "std::vector<record_field>& fields() const`");
  else
    static_assert(
        record_format<F>,
        "penstock: a record_format needs `static constexpr std::string_view source_name`, and `index "
        "read_index(session_view, object_id) const`");
  return true;
}

/// In the place of what is no format, so that there is one error.
struct no_format {
  static constexpr std::string_view source_name = "none";
  struct index {
    std::vector<record_field> none{};
    [[nodiscard]] static std::uint64_t records() noexcept { return 0; }
    [[nodiscard]] const std::vector<record_field>& fields() const noexcept { return none; }
    [[nodiscard]] static value_place place(std::uint64_t, std::size_t) noexcept { return {}; }
  };
  template <class F>
  no_format(const F&) noexcept {}
  [[nodiscard]] static index read_index(session_view, object_id) { return {}; }
};
template <class F>
using format_or_none = std::conditional_t<own_layout<F> || record_format<F>, F, no_format>;

}  // namespace detail
}  // namespace penstock::inline v0_1
