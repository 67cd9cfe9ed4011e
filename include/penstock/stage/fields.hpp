// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/error.hpp>
#include <penstock/core/open_sample.hpp>
#include <penstock/core/pipe.hpp>
#include <penstock/core/projection.hpp>

#include <array>
#include <cstring>
#include <type_traits>
#include <utility>

namespace penstock::inline v0_1 {

namespace mistakes {

struct fields_need_names : about_element {
  static consteval void explain(auto reached) {
    static_assert(never<decltype(reached)>,
                  "penstock: fields<...> chooses members by name, and what arrives here has no names; "
                  "drop it");
  }
};

}  // namespace mistakes

/// A member's name as a template argument of `fields`, and in the `field<...>` of `decode`: separate
/// alternatives with `;`; the first names the field.
template <std::size_t N>
struct member_name {
  char text[N]{};
  bool is_optional = false;

  consteval member_name(const char (&source)[N]) {  // NOLINT: implicit, so that you can pass a literal
    for (std::size_t i = 0; i < N; ++i) text[i] = source[i];
  }
  [[nodiscard]] constexpr std::string_view view() const { return {text, N - 1}; }
  [[nodiscard]] constexpr std::size_t alternatives() const {
    std::size_t count = 1;
    for (const char c : text) count += c == ';' ? 1 : 0;
    return count;
  }
  [[nodiscard]] constexpr std::size_t first_length() const {
    std::size_t end = 0;
    while (end + 1 < N && text[end] != ';') ++end;
    return end;
  }
};

/// Marks a member of `fields` that may be missing: `fields<"jpg", optional<"txt">>`. A missing member has no
/// bytes.
template <member_name Name>
inline constexpr auto optional = [] {
  auto marked = Name;
  marked.is_optional = true;
  return marked;
}();

/// A blob that may be absent; then it has no bytes and `has_value()` is false.
template <class Blob>
class optional_blob {
 public:
  using unfinished = void;
  using blob_type = Blob;
  optional_blob() = default;
  explicit optional_blob(Blob blob) : blob_(std::move(blob)), there_(true) {}
  [[nodiscard]] bool has_value() const noexcept { return there_; }
  [[nodiscard]] std::uint64_t size() const { return there_ ? static_cast<std::uint64_t>(blob_.size()) : 0; }
  void read_into(mutable_bytes into) const {
    if (there_) blob_.read_into(into);
  }
  [[nodiscard]] bytes_view finish() const { return there_ ? bytes_view(blob_.finish()) : bytes_view{}; }

 private:
  Blob blob_{};
  bool there_ = false;
};

namespace detail {

template <member_name M, std::size_t... Is>
constexpr auto spell_member(std::index_sequence<Is...>) -> name<M.text[Is]...> {
  return {};
}
template <member_name M>
using member_name_type = decltype(spell_member<M>(std::make_index_sequence<M.first_length()>{}));

/// All alternatives of all members, each as a name.
template <member_name... Names>
inline constexpr auto alternatives = [] {
  std::array<std::string_view, (std::size_t{0} + ... + Names.alternatives())> each;
  std::size_t n = 0;
  for (const std::string_view all : {Names.view()...}) {
    std::size_t begin = 0;  // GCC's sanitizer does not allow a constant find() here
    for (std::size_t i = 0; i <= all.size(); ++i) {
      if (i != all.size() && all[i] != ';') continue;
      each[n++] = all.substr(begin, i - begin);
      begin = i + 1;
    }
  }
  return each;
}();

/// The place of the first alternative that the sample has, or the sample's size.
template <member_name Name, open_sample S>
std::size_t find_member(const S& sample) {
  const std::size_t size = sample.size();
  std::size_t found = size;
  // The lengths are known when this is compiled, so that comparing calls nothing.
  const auto find = [&]<std::size_t I>() {
    constexpr std::string_view wanted = alternatives<Name>[I];
    if constexpr (requires { sample.place_of(wanted); }) {  // which rows of many columns remember
      found = sample.place_of(wanted);
      return found != size;
    }
    for (found = 0; found != size; ++found) {
      const std::string_view name = sample.name(found);
      if (name.size() != wanted.size()) continue;
      // an empty name may have no memory, which memcmp does not take
      if (wanted.empty() || std::memcmp(name.data(), wanted.data(), wanted.size()) == 0) return true;
    }
    return false;
  };
  [&]<std::size_t... Is>(std::index_sequence<Is...>) {
    (void)(find.template operator()<Is>() || ...);
  }(std::make_index_sequence<Name.alternatives()>{});
  return found;
}

[[noreturn, gnu::cold]] inline void refuse_missing(std::string_view wanted, std::string_view has,
                                                   std::string_view key) {
  throw error(errc::missing,
              {"the sample has no member '", wanted, "'; it has: ", (has.empty() ? "none" : has)})
      .for_key(key);
}

[[noreturn, gnu::cold]] void throw_missing(const open_sample auto& sample, std::string_view wanted) {
  std::string has;
  for (std::size_t i = 0; i < sample.size(); ++i) append(has, {i == 0 ? "" : ", ", sample.name(i)});
  refuse_missing(wanted, has, sample.key());
}

}  // namespace detail

/// Closes a sample: chooses members by name and makes a record: `fields<"jpg;jpeg", "cls">`.
///
/// In: an open sample (a key and a table of members), or a record, whose named fields it keeps. Out: a record
/// of blobs, in the order written. A missing member is `errc::missing` with the key, unless it is
/// `optional<"name">`. Other members are never read. Pointwise; keeps all five guarantees. Cost: a few
/// comparisons of short names.
///
///     auto images = webdataset("train-{0000..0127}.tar") | fields<"jpg;jpeg", "cls">;
template <member_name... Names>
struct fields_stage {
  using penstock_part = pointwise_tag;
  static constexpr std::string_view stage_name = "fields";
  static constexpr bool only_chooses = true;

  template <class V, class Call>
  auto apply(V&& sample, const Call&) const {
    if constexpr (any_record<V>) {
      using type = std::remove_cvref_t<V>;
      return record<
          typename type::template field_at<type::template index_of<detail::member_name_type<Names>>>...>(
          get<type::template index_of<detail::member_name_type<Names>>>(sample)...);
    } else {
      using blob_type = typename std::remove_cvref_t<V>::blob_type;
      return record<
          basic_field<detail::member_name_type<Names>,
                      std::conditional_t<Names.is_optional, optional_blob<blob_type>, blob_type>>...>(
          detail::made_by{}, [&] { return pick<Names>(sample); }...);
    }
  }
  [[nodiscard]] std::string describe() const {
    return detail::list_text("fields<\"", {Names.view()...}, "\", \"", "\">");
  }
  /// The named members, with all their alternatives; of a record, the fields.
  template <class Element>
  static constexpr projection uses() {
    if constexpr (any_record<Element>)
      return projection::of_these(detail::listed_names<detail::member_name_type<Names>...>);
    else
      return projection::of_these(detail::alternatives<Names...>);
  }
  template <class Context>
  static consteval auto diagnose() {
    using element = std::remove_cvref_t<typename Context::element>;
    if constexpr (!any_record<element> && !open_sample<element>)
      return mistakes::fields_need_names{};
    else if constexpr (!detail::names_differ<basic_field<detail::member_name_type<Names>, int>...>())
      return mistakes::field_twice{};
    else if constexpr (any_record<element> && !(has_field<element, detail::member_name_type<Names>> && ...))
      return mistakes::no_such_field{};
    else
      return mistakes::none{};
  }

 private:
  template <member_name Name, class S>
  static auto pick(const S& sample) {
    using blob_type = typename S::blob_type;
    const std::size_t i = detail::find_member<Name>(sample);
    if constexpr (Name.is_optional) {
      return i == sample.size() ? optional_blob<blob_type>() : optional_blob<blob_type>(sample.member(i));
    } else {
      if (i == sample.size()) detail::throw_missing(sample, Name.view());
      return sample.member(i);
    }
  }
};

template <member_name... Names>
inline constexpr fields_stage<Names...> fields{};

}  // namespace penstock::inline v0_1
