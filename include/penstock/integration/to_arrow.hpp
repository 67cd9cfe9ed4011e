// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/arrow_abi.hpp>
#include <penstock/core/bytes.hpp>
#include <penstock/core/compiled.hpp>
#include <penstock/core/half.hpp>
#include <penstock/core/record.hpp>
#include <penstock/core/strided_view.hpp>
#include <penstock/core/tensor.hpp>
#include <penstock/core/to_size.hpp>
#include <penstock/core/uneven_views.hpp>
#include <penstock/run/block/batch_handle.hpp>

#include <concepts>
#include <exception>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace penstock::inline v0_1 {

namespace detail {

/// A column before it is exported: the contents of a C schema and a C array.
struct exported_arrow {
  std::string name, format;
  std::uint64_t length = 0, nulls = 0;
  std::vector<const void*> buffers;
  std::vector<exported_arrow> children;
  std::shared_ptr<const void> keep, keep_validity;  ///< what the buffers are in

  void add(std::string_view child_name, exported_arrow child);
  /// The values are copies of these bools, eight in a byte.
  void keep_bits(const std::byte* bools, std::size_t count);
  /// Wraps values into lists of fixed size, one for each dimension behind the first.
  void nest(const extents& shape);
  /// Makes the rows null, in all columns, that hold no sample.
  void mark_valid(std::span<const std::uint8_t> valid);
};

// Source: Arrow, "The Arrow C data interface".

/// Each allocates what the struct refers to, and its `release` frees it.
void export_schema(const exported_arrow& from, arrow_abi::schema* into);
void export_array(exported_arrow from, arrow_abi::array* into);

/// The stream keeps `run`; `next` gives its next batch, and false at the end.
void export_stream(std::shared_ptr<void> run, bool (*next)(void* run, exported_arrow& into),
                   arrow_abi::array_stream* into);

/// Arrow's format of a number in a batch; empty for types that it has none for.
template <class T>
inline constexpr std::string_view arrow_format_of = [] {
  using namespace std::string_view_literals;
  if constexpr (std::same_as<T, bool>)
    return "b"sv;
  else if constexpr (std::same_as<T, half>)
    return "e"sv;
  else if constexpr (std::same_as<T, float>)
    return "f"sv;
  else if constexpr (std::same_as<T, double>)
    return "g"sv;
  else if constexpr (std::same_as<T, std::byte> || std::same_as<T, char>)
    return "C"sv;
  else if constexpr (!std::integral<T> || sizeof(T) > 8)
    return ""sv;
  else if constexpr (std::signed_integral<T>)
    return sizeof(T) == 1 ? "c"sv : sizeof(T) == 2 ? "s"sv : sizeof(T) == 4 ? "i"sv : "l"sv;
  else
    return sizeof(T) == 1 ? "C"sv : sizeof(T) == 2 ? "S"sv : sizeof(T) == 4 ? "I"sv : "L"sv;
}();

/// A column of a batch as it is exported, and the memory it is in.
template <class View>
exported_arrow export_arrow_values(const held_column<View>& held, const void* data, std::size_t count,
                                   std::string_view format, bool is_bool) {
  exported_arrow made;
  made.format = format;
  made.length = count;
  made.keep = std::make_shared<held_column<View>>(held);
  const auto* const bytes = static_cast<const std::byte*>(data);
  if (is_bool)
    made.keep_bits(bytes, count);
  else
    made.buffers = {nullptr, count == 0 ? nullptr : bytes};
  return made;
}
template <class T, class View>
exported_arrow export_arrow_array(const held_column<View>& held, const T* data, const extents& shape) {
  constexpr bool is_number = !arrow_format_of<T>.empty();
  static_assert(is_number,
                "penstock: to_arrow: Arrow has types for numbers, bool, texts and bytes, and the values of "
                "this column are none; write map(f) before batch, which makes some of them");
  exported_arrow made =
      export_arrow_values(held, data, to_size(shape.elements()), arrow_format_of<T>, std::same_as<T, bool>);
  made.nest(shape);
  return made;
}

// One for each view that a batch has.
template <class T, class View>
exported_arrow export_arrow_view(const held_column<View>& held, std::span<const T> view) {
  return export_arrow_array(held, view.data(), extents(view.size()));
}
template <class T, class View>
exported_arrow export_arrow_view(const held_column<View>& held, const tensor_view<const T>& view) {
  return export_arrow_array(held, view.data(), view.shape());
}
template <class T, class View>
exported_arrow export_arrow_view(const held_column<View>& held, const ragged_view<T>& view) {
  const bool text = std::same_as<T, char>, binary = std::same_as<T, std::byte>;
  exported_arrow values = export_arrow_values(held, view.values().data(), view.values().size(),
                                              arrow_format_of<T>, std::same_as<T, bool>);
  exported_arrow made;
  made.length = view.size();
  made.format = text ? "U" : binary ? "Z" : "+L";
  made.keep = values.keep;
  made.buffers = {nullptr, view.offsets().data()};
  if (text || binary)
    made.buffers.push_back(values.buffers.back());
  else
    made.add("item", std::move(values));
  return made;
}
template <class T, class View>
exported_arrow export_arrow_view(const held_column<View>& held, const padded_view<T>& view) {
  exported_arrow made;
  made.format = "+s";
  made.length = view.size();
  made.buffers = {nullptr};
  made.add("values", export_arrow_array(held, view.values().data(), view.shape()));
  made.add("length", export_arrow_array(held, view.lengths().data(), extents(view.size())));
  return made;
}

/// What is exported: anything that has one of the views above.
template <class View>
concept arrow_column_view =
    requires(const held_column<View>& held, const View& view) { export_arrow_view(held, view); };

template <any_batch B>
exported_arrow export_arrow_batch(const B& b) {
  static_assert(
      !B::session_type::copies,
      "penstock: to_arrow is for batches in host memory, and this run copies them to a device; hand "
      "them on with to_dlpack");
  using element = typename B::element;
  exported_arrow made;
  made.format = "+s";
  made.length = b.size();
  made.buffers = {nullptr};
  const auto add = [&](std::string_view name, auto field) {
    const auto held = b.template hold<decltype(field)::value>();
    const auto view = held.view();
    constexpr bool known = arrow_column_view<std::remove_cvref_t<decltype(view)>>;
    static_assert(
        known,
        "penstock: to_arrow: a column of arrays of unequal shapes has no Arrow type; hand it on with "
        "to_dlpack");
    if constexpr (known) made.add(name, export_arrow_view(held, view));
  };
  if constexpr (any_record<element>) {
    [&]<class... Fields, std::size_t... Is>(const record<Fields...>*, std::index_sequence<Is...>) {
      (add(Fields::name, std::integral_constant<std::size_t, Is>()), ...);
    }(static_cast<const element*>(nullptr), std::make_index_sequence<element::size>{});
  } else {
    add("value", std::integral_constant<std::size_t, 0>());
  }
  made.mark_valid(b.valid());
  return made;
}

/// The structs of Arrow's C data interface, in any library's declaration.
template <class T>
concept c_array = sizeof(T) == sizeof(arrow_abi::array) && requires(T& one) {
  one.null_count;
  one.buffers;
  one.release;
};
template <class T>
concept c_schema = sizeof(T) == sizeof(arrow_abi::schema) && requires(T& one) {
  one.format;
  one.flags;
  one.release;
};

template <class T>
concept c_stream = sizeof(T) == sizeof(arrow_abi::array_stream) && requires(T& one) {
  one.get_schema;
  one.get_next;
  one.release;
};

/// A run whose batches can be requested one after another.
template <class Run>
concept batched_run = requires(Run& run) {
  { *run.next() } -> any_batch;
};

/// The next batch of a run as it is exported; false at the end.
template <class Run>
bool export_next(void* run, exported_arrow& into) {
  auto found = static_cast<Run*>(run)->next();
  if (found.failure != nullptr) std::rethrow_exception(found.failure);
  if (!found) return false;
  into = export_arrow_batch(*found);
  return true;
}

}  // namespace detail

/// A batch as a record batch of Arrow's C data interface, without a copy: `to_arrow(batch, &array, &schema)`.
///
///     ArrowArray array;
///     ArrowSchema schema;
///     to_arrow(b, &array, &schema);  // for pyarrow.RecordBatch._import_from_c or arrow::ImportRecordBatch
///
/// In: a batch in host memory; the structs of any library's declaration, which are overwritten. Out: a struct
/// with a column for each field, or with the column "value" for elements that are no records. Numbers are
/// columns of their type, arrays fixed-size lists (nested, one for each further dimension), texts and bytes
/// `large_string` and `large_binary`, ragged fields `large_list`, padded ones a struct of values and length.
/// Slots that hold no sample are null. `bool` is copied, since Arrow has eight in a byte.
/// The array holds the batch's memory, as `hold` does: it may outlive batch, run and plan, and gives the
/// memory back when its `release` is called, in any thread. It counts as a batch that you hold.
/// Cost: some twenty small allocations for each column. Throws what allocations throw.
/// Source: Arrow, "The Arrow C data interface".
template <any_batch B, detail::c_array Array, detail::c_schema Schema>
void to_arrow(const B& b, Array* array, Schema* schema) {
  detail::exported_arrow made = detail::export_arrow_batch(b);
  arrow_abi::held<arrow_abi::schema> columns;
  detail::export_schema(made, columns.get());
  arrow_abi::held<arrow_abi::array> rows;
  detail::export_array(std::move(made), rows.get());
  *reinterpret_cast<arrow_abi::schema*>(schema) = columns.release();
  *reinterpret_cast<arrow_abi::array*>(array) = rows.release();
}

/// The batches of a run as a stream of Arrow's C stream interface: `to_arrow_stream(plan.open(), &stream)`.
///
///     ArrowArrayStream stream;
///     to_arrow_stream(plan.open(), &stream);  // for pyarrow, DuckDB, Polars
///
/// In: a run, which the stream owns from then on; the struct of any library's declaration, which is
/// overwritten. Out: its batches, each as `to_arrow` exports it. The columns' types are those of the first
/// batch, which the first call of the stream waits for; a batch of other lengths of arrays is an error of the
/// stream (EINVAL), as is any failure of the run (EIO): its message is what `get_last_error` returns.
/// A run without batches has no columns.
/// Threads: the stream is used by one thread at a time, as the run.
/// Source: Arrow, "The Arrow C stream interface".
template <detail::batched_run Run, detail::c_stream Stream>
void to_arrow_stream(Run run, Stream* stream) {
  detail::export_stream(std::make_shared<Run>(std::move(run)), &detail::export_next<Run>,
                        reinterpret_cast<arrow_abi::array_stream*>(stream));
}

}  // namespace penstock::inline v0_1

#ifndef PENSTOCK_COMPILED
#include <penstock/integration/to_arrow.ipp>
#endif
