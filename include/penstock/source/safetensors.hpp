// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#if !__has_include(<nlohmann/json.hpp>)
#error "penstock/source/safetensors.hpp needs nlohmann-json: link penstock::json"
#endif

#include <penstock/base/name_list.hpp>
#include <penstock/core/half.hpp>
#include <penstock/source/dataset_format.hpp>
#include <penstock/source/files/hash_bytes.hpp>
#include <penstock/source/files/mapped_paths.hpp>
#include <penstock/source/rows/row_source.hpp>
#include <penstock/source/rows/safetensors_header.hpp>
#include <penstock/storage/mapped_file.hpp>

#include <bit>

namespace penstock::inline v0_1 {

/// The safetensors name of a type; empty for a type it does not have. For a half-float type of your own:
/// `template <> inline constexpr std::string_view penstock::safetensors_dtype<my_bfloat> = "BF16";`
template <class T>
inline constexpr std::string_view safetensors_dtype = [] {
  using namespace std::string_view_literals;
  if constexpr (std::same_as<T, bool>)
    return "BOOL"sv;
  else if constexpr (std::same_as<T, half>)
    return "F16"sv;
  else if constexpr (std::same_as<T, bfloat16>)
    return "BF16"sv;
  else if constexpr (std::same_as<T, float>)
    return "F32"sv;
  else if constexpr (std::same_as<T, double>)
    return "F64"sv;
  else if constexpr (std::signed_integral<T>)
    return sizeof(T) == 1 ? "I8"sv : sizeof(T) == 2 ? "I16"sv : sizeof(T) == 4 ? "I32"sv : "I64"sv;
  else if constexpr (std::unsigned_integral<T>)
    return sizeof(T) == 1 ? "U8"sv : sizeof(T) == 2 ? "U16"sv : sizeof(T) == 4 ? "U32"sv : "U64"sv;
  else
    return ""sv;
}();

namespace detail {

template <class T>
concept safetensors_type = !safetensors_dtype<T>.empty() && std::is_trivially_copyable_v<T>;

/// The header of an object of a session.
[[nodiscard]] inline safetensors_header safetensors_header_of(session_view session, object_id object,
                                                              std::uint64_t size) {
  static_assert(std::endian::native == std::endian::little,
                "penstock: safetensors files are little-endian, and are shown in place: this needs a "
                "little-endian machine");
  const object_bytes start = session.range(object, 0, std::min<std::uint64_t>(size, 64));
  const std::uint64_t length = safetensors_header_bytes(start, size);
  const object_bytes header = session.range(object, 8, length);
  return read_safetensors_header(header, size);
}

[[noreturn]] inline void no_safetensors() {
  throw error(errc::missing, "the safetensors file has no tensors, only a header").at_offset(8);
}

/// The entry of a tensor; throws if it is missing or not of type `dtype` (empty: any type).
[[nodiscard]] inline const safetensors_entry& safetensors_tensor(const safetensors_header& header,
                                                                 std::string_view name,
                                                                 std::string_view dtype = {}) {
  const auto found = header.tensors.find(name);
  if (header.tensors.empty()) no_safetensors();
  if (found == header.tensors.end()) {
    std::string known;
    for (const auto& [other, entry] : header.tensors) list_name(known, other);
    throw error(errc::missing, {"the safetensors file has no tensor '", name, "'; it has: ", known})
        .at_offset(8);
  }
  if (!dtype.empty() && found->second.dtype != dtype)
    throw error(errc::format, {"the tensor '", name, "' of the safetensors file is of ", found->second.dtype,
                               ", but ", dtype, " was asked for; see safetensors_dtype"})
        .at_offset(found->second.begin);
  return found->second;
}

/// The rows of a tensor; throws if it is missing or not of type `dtype`.
[[nodiscard]] inline stored_rows find_safetensors_rows(session_view session, object_id object,
                                                       std::uint64_t size, std::string_view name,
                                                       std::string_view dtype) {
  const safetensors_header header = safetensors_header_of(session, object, size);
  const auto& entry = safetensors_tensor(header, name, dtype);
  if (entry.shape.rank() == 0)
    throw error(errc::format, {"the tensor '", name, "' is one number, which has no rows"})
        .at_offset(entry.begin);
  return {entry.shape, entry.begin, entry.begin, false};
}

template <class T>
struct safetensors_format {
  static_assert(safetensors_type<T>,
                "penstock: safetensors_rows<T> needs a bool, integer or floating type; for a half-float type "
                "of your own specialise penstock::safetensors_dtype");

  static constexpr std::string_view source_name = "safetensors_rows", holder = "this tensor";

  std::string name;

  [[nodiscard]] std::uint64_t mark() const { return hash_bytes(0x7361666574656e, bytes_of(name)); }
  [[nodiscard]] static constexpr std::string_view type_name() noexcept { return safetensors_dtype<T>; }
  [[nodiscard]] stored_rows find(session_view session, object_id object, std::uint64_t size) const {
    return find_safetensors_rows(session, object, size, name, safetensors_dtype<T>);
  }
};

}  // namespace detail

/// A safetensors file, mapped: its tensors by name.
///
///     const safetensors_file weights("model.safetensors");
///     const auto bias = weights.tensor<float>("layers.0.bias");     // a view of the mapping
///
/// In: the path of a file. Out: views, which are valid as long as this object or a copy of it lives; copies
/// share the mapping.
/// Cost: the constructor reads the header, at most 100 MB of JSON; `tensor` is a search by name. Throws, with
/// file and offset, `errc::format` for a header that does not describe the file exactly: lengths, offsets and
/// sizes that disagree, gaps, overlapping tensors, duplicate names, types or keys that the format does not
/// have, more than eight dimensions; `errc::limit` for a header of more than 100,000,000 bytes;
/// `errc::missing` for an unknown name; `errc::io`.
/// Threads: any number may call const members at once.
/// Source: safetensors, README.md ("Format") and safetensors/src/tensor.rs.
class safetensors_file {
 public:
  explicit safetensors_file(std::string path, mapped_file_options options = {})
      : path_(std::move(path)),
        session_(mapped_file(std::vector<std::string>{path_}, options).connect()),
        header_(read()) {}

  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  /// All tensors, by name.
  [[nodiscard]] const std::map<std::string, safetensors_entry, std::less<>>& tensors() const noexcept {
    return header_.tensors;
  }
  [[nodiscard]] const std::map<std::string, std::string, std::less<>>& metadata() const noexcept {
    return header_.metadata;
  }

  /// The values of a tensor. Throws `errc::format` if it is of another type, or lies at an address that is
  /// not a multiple of `alignof(T)`; `bytes` works in either case.
  template <class T>
  [[nodiscard]] tensor_view<const T> tensor(std::string_view name) const {
    static_assert(
        detail::safetensors_type<T>,
        "penstock: tensor<T> needs a bool, integer or floating type; for a half-float type of your own "
        "specialise penstock::safetensors_dtype");
    return placed([&]() -> tensor_view<const T> {
      const safetensors_entry& entry = detail::safetensors_tensor(header_, name, safetensors_dtype<T>);
      const bytes_view found = session_.view(0, entry.begin, entry.bytes);
      if (reinterpret_cast<std::uintptr_t>(found.data()) % alignof(T) != 0)
        throw error(errc::format,
                    {"the tensor '", name, "' begins at an address that is not a multiple of ", alignof(T),
                     ": save the file again with a writer that aligns, or copy bytes()"})
            .at_offset(entry.begin);
      if constexpr (std::same_as<T, bool>) {
        // a bool with any other byte value is undefined behaviour
        const auto bad =
            std::find_if(found.begin(), found.end(), [](std::byte b) { return b > std::byte{1}; });
        if (bad != found.end())
          throw error(errc::format, {"the tensor '", name, "' has a BOOL that is neither 0 nor 1"})
              .at_offset(entry.begin + static_cast<std::uint64_t>(bad - found.begin()));
      }
      return {reinterpret_cast<const T*>(found.data()), entry.shape};
    });
  }
  /// The bytes of a tensor of any type.
  [[nodiscard]] bytes_view bytes(std::string_view name) const {
    return placed([&] {
      const safetensors_entry& entry = detail::safetensors_tensor(header_, name);
      return session_.view(0, entry.begin, entry.bytes);
    });
  }
  /// Throws if views may have shown bytes that are not the file's; see `mapped_file_options::guarded`.
  void confirm() const { session_.confirm(0); }

 private:
  detail::safetensors_header read() {
    return placed([this] {
      auto header = detail::safetensors_header_of(session_, 0, session_.size(0));
      session_.confirm(0);
      return header;
    });
  }
  template <class F>
  auto placed(F&& f) const -> decltype(f()) {
    try {
      return f();
    } catch (error& e) {
      session_.confirm(0);
      e.in_file(path_);
      throw;
    }
  }

  std::string path_;
  mapped_file::session session_;
  detail::safetensors_header header_;
};

/// The source that `safetensors_rows` makes of safetensors files.
template <class T, storage Storage, std::uint64_t... Lengths>
using safetensors_row_source = detail::row_source<detail::safetensors_format<T>, T, Storage, Lengths...>;

/// The rows of one tensor of safetensors files along its first dimension, all files as one dataset.
///
///     auto features = safetensors_rows<float>("features-{00..07}.safetensors", "clip") | shuffle | batch(256);
///     auto tokens = safetensors_rows<std::int32_t, 2048>("tokens.safetensors", "ids");
///
/// In: a pattern of names or a list of paths, which are `mapped_file`, or any storage; the tensor's name,
/// which is common to all files.
/// Out, kind, cost, threads: as for `npy_rows`.
/// Throws what `safetensors_file` throws; `errc::format` for a type other than `T` and for a tensor of no
/// dimensions; `errc::shape` if the shape of the rows is not the one asked for or differs from that of the
/// first file; `errc::io`, also for a file that was changed after the plan was made. For a file that shrinks
/// while it is mapped see `mapped_file_options`.
/// Source: safetensors, README.md ("Format").
template <class T, std::uint64_t... Lengths, storage Storage>
[[nodiscard]] safetensors_row_source<T, Storage, Lengths...> safetensors_rows(Storage where,
                                                                              std::string_view tensor) {
  return safetensors_row_source<T, Storage, Lengths...>(std::move(where), {std::string(tensor)});
}
template <class T, std::uint64_t... Lengths>
[[nodiscard]] safetensors_row_source<T, mapped_file, Lengths...> safetensors_rows(detail::mapped_paths paths,
                                                                                  std::string_view tensor) {
  return safetensors_row_source<T, mapped_file, Lengths...>(std::move(paths).files(), {std::string(tensor)});
}

namespace detail {

/// Whether some files begin as safetensors do: with the length of a header that is JSON.
[[nodiscard]] inline bool is_safetensors(const listed_files& some) {
  if (some.head.size() < 10) return false;
  const auto length = load_little<std::uint64_t>(bytes_of(some.head).data());
  return length >= 2 && length <= some.size - 8 && some.head[8] == '{' &&
         (some.head[9] == '"' || some.head[9] == '}' || some.head[9] == ' ');
}

/// The tensor that is meant by this name: if it is empty, the only one.
[[nodiscard]] inline std::string chosen_tensor(const safetensors_header& header, const std::string& tensor) {
  if (!tensor.empty()) return tensor;
  if (header.tensors.empty()) no_safetensors();
  if (header.tensors.size() == 1) return header.tensors.begin()->first;
  std::string known;
  for (const auto& [name, entry] : header.tensors) list_name(known, name);
  throw error(errc::argument,
              {"the safetensors file has several tensors, ", known,
               ": name one, as in dataset(path, safetensors_rows_format<>{.tensor = ...}), or "
               "join several with zip<...>(safetensors_rows<...>(...), ...)"});
}

}  // namespace detail

/// Safetensors files for `dataset`, of several tensors the one that is named, of one of these types; without
/// any, `std::uint8_t`, `std::int16_t`, `std::int32_t`, `std::int64_t`, `float` or `double`.
template <class... Ts>
struct safetensors_rows_format {
  using types = detail::number_types<detail::common_numbers, Ts...>;
  static constexpr std::string_view name = "safetensors_rows";

  std::string tensor = {};

  [[nodiscard]] static format_fit look(const dataset_listing& there) {
    return there.fit_of(&detail::is_safetensors);
  }
  [[nodiscard]] auto open(const dataset_listing& there) const {
    return open_in(mapped_file(there.paths_of(&detail::is_safetensors)), there);
  }
  template <storage Storage>
  [[nodiscard]] auto open_in(Storage where, const dataset_listing& there) const {
    auto session = where.connect();
    std::string chosen, dtype;
    detail::in_file(where.names()[0], [&] {
      const auto header = detail::safetensors_header_of(session, 0, session.size(0));
      chosen = detail::chosen_tensor(header, tensor);
      dtype = detail::safetensors_tensor(header, chosen).dtype;
    });
    return detail::source_of_type(
        std::type_identity<types>{}, {&there, name, dtype},
        [&]<class T>() { return safetensors_dtype<T> == dtype; },
        [&]<class T>() { return safetensors_rows<T>(std::move(where), chosen); });
  }
};

}  // namespace penstock::inline v0_1
