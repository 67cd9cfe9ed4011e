// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/opens_as_plan.hpp>
#include <penstock/core/random.hpp>
#include <penstock/source/concepts.hpp>
#include <penstock/source/tables/arrow_import.hpp>

namespace penstock::inline v0_1 {

namespace detail {

/// The struct of Arrow's C stream interface, in any library's declaration.
template <class T>
concept c_array_stream =
    sizeof(T) == sizeof(arrow_abi::array_stream) && alignof(T) == alignof(arrow_abi::array_stream) &&
    std::is_trivially_copyable_v<T> && requires(T& stream) {
      stream.get_schema;
      stream.get_next;
      stream.get_last_error;
      stream.release;
      stream.private_data;
    };
/// A function that makes such a struct.
template <class F>
concept makes_array_streams = std::invocable<F&> && c_array_stream<std::invoke_result_t<F&>>;

template <c_array_stream T>
void move_array_stream(T& from, arrow_abi::array_stream* into) noexcept {
  *into = *reinterpret_cast<const arrow_abi::array_stream*>(&from);
  from.release = nullptr;
}

}  // namespace detail

/// The source that `arrow_stream` makes.
class arrow_stream_source : public opens_as_plan<arrow_stream_source> {
 public:
  using penstock_part = source_tag;
  using element = detail::arrow_stream_row;
  static constexpr std::string_view source_name = "arrow_stream";
  static constexpr bool seekable = true;

  using reader = detail::arrow_stream_reader;

  explicit arrow_stream_source(detail::arrow_stream_maker maker) : maker_(std::move(maker)) {}

  [[nodiscard]] std::string describe() const { return "arrow_stream(rows that are read forward)"; }
  /// Equal for all streams: their contents are not known until they are read.
  [[nodiscard]] std::uint64_t fingerprint() const noexcept { return mix64(0x6172726f77); }
  [[nodiscard]] reader connect() const { return reader(maker_); }

 private:
  detail::arrow_stream_maker maker_;
};

/// The rows of a stream of another library, through Arrow's C stream interface, without a copy: of DuckDB,
/// Polars, Lance, ADBC, pyarrow, and whatever else exports one.
///
///     auto rows = arrow_stream(stream) | decode<field<"label", arrow_value<std::int64_t>>> | batch(256);
///     auto epochs = arrow_stream([&] { return query(database, "select * from samples"); });
///
/// In: an `ArrowArrayStream` (of any library's declaration, or `arrow_abi::array_stream`), which is moved
/// away from where it was; or a function that returns one, which is called once for each epoch, from the
/// thread that reads. No library is needed.
/// Out: a row as an open sample, whose members are the columns, as for `arrow_ipc`. A sample keeps its batch
/// alive until it is consumed, also in a `shuffle_buffer`.
/// Kind: a forward source; deterministic and resumable as far as the stream is: a resumed run takes a new
/// stream and passes over the batches and rows that were delivered.
/// Cost per sample: one reference to its batch; nothing is copied but what codecs copy. Memory: the batches
/// that samples belong to, which the exporter owns.
/// Threads: the stream is read by one thread at a time, all evaluate; batches are released by any thread.
/// Errors: errc::argument for a stream that was released or is used a second time, one whose values are no
/// rows, and batches that do not fit its schema; errc::io with the exporter's own message; errc::state for a
/// state of another stream. Lengths of buffers are the exporter's promise: the interface does not say them.
/// Source: Arrow, "The Arrow C stream interface".
template <detail::c_array_stream Stream>
[[nodiscard]] arrow_stream_source arrow_stream(Stream& stream) {
  arrow_abi::array_stream moved;
  detail::move_array_stream(stream, &moved);
  using kept = arrow_abi::held<arrow_abi::array_stream>;
  return arrow_stream_source(
      {std::make_shared<kept>(moved), [](void* kept_stream, arrow_abi::array_stream* into) {
         *into = static_cast<kept*>(kept_stream)->release();
       }});
}
template <detail::c_array_stream Stream>
[[nodiscard]] arrow_stream_source arrow_stream(Stream* stream) {
  return arrow_stream(*stream);
}
template <detail::makes_array_streams Make>
[[nodiscard]] arrow_stream_source arrow_stream(Make make) {
  return arrow_stream_source(
      {std::make_shared<Make>(std::move(make)), [](void* maker, arrow_abi::array_stream* into) {
         auto made = (*static_cast<Make*>(maker))();
         detail::move_array_stream(made, into);
       }});
}

}  // namespace penstock::inline v0_1
