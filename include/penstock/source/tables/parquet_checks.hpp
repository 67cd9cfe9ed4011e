// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/error.hpp>
#include <penstock/core/message.hpp>
#include <penstock/source/tables/parquet_files.hpp>

#ifdef __GNUC__
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wunused-parameter"
#endif
#include <parquet/column_page.h>
#include <parquet/column_reader.h>
#include <parquet/file_reader.h>
#include <parquet/metadata.h>
#include <parquet/schema.h>
#include <parquet/types.h>
#ifdef __GNUC__
#pragma GCC diagnostic pop
#endif

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace penstock::inline v0_1::detail {

/// Throws errc::checksum, naming the column and the page, for the first page of these columns whose bytes do
/// not have the checksum that stands in front of them. `reader` compares them. Of other damage it says
/// nothing.
inline void find_changed_page(parquet::ParquetFileReader& reader, int group, std::span<const int> columns) {
  for (const int column : columns) {
    const bool has_dictionary =
        reader.metadata()->RowGroup(group)->ColumnChunk(column)->has_dictionary_page();
    std::size_t passed = 0;
    try {
      const auto pages = reader.RowGroup(group)->GetColumnPageReader(column);
      while (pages->NextPage() != nullptr) ++passed;
    } catch (const std::exception& e) {
      if (std::string_view(e.what()).find("CRC checksum") == std::string_view::npos) continue;
      const std::string page = has_dictionary && passed == 0
                                   ? std::string("the dictionary page")
                                   : text({"data page ", passed - (has_dictionary ? 1 : 0)});
      throw error(errc::checksum,
                  {"row group ", group, ", column '",
                   reader.metadata()->schema()->Column(column)->path()->ToDotString(), "', ", page,
                   ": the bytes do not have the checksum that the file says, so that it is damaged: fetch it "
                   "anew, or read it as it is with parquet_options{.page_checksum_verification = false}"});
    }
  }
}

/// Whether a timestamp of INT96, nanoseconds of a day and the Julian day, has a number in this unit.
[[nodiscard]] inline bool fits_in_unit(const parquet::Int96& value, timestamp_unit unit) noexcept {
  constexpr std::int64_t julian_day_of_1970 = 2440588, seconds = 86400;
  std::int64_t nanoseconds = 0;
  std::memcpy(&nanoseconds, value.value.data(), sizeof(nanoseconds));
  std::int64_t in_second = 1;
  for (auto i = static_cast<int>(unit); i > 0; --i) in_second *= 1000;
  // Arrow divides these as a number without a sign.
  if (nanoseconds < 0 && unit != timestamp_unit::nano) return false;
  const std::int64_t behind = nanoseconds / (1'000'000'000 / in_second);
  std::int64_t all = static_cast<std::int64_t>(value.value[2]) - julian_day_of_1970;
  return !__builtin_mul_overflow(all, seconds * in_second, &all) &&
         !__builtin_add_overflow(all, behind, &all);
}

/// Throws errc::format for a timestamp of INT96 that its unit cannot count: Arrow would give another one. All
/// other units of Parquet are those of Arrow.
inline void check_int96(parquet::ParquetFileReader& reader, int group, std::span<const int> columns,
                        timestamp_unit unit) {
  for (const int column : columns) {
    const parquet::ColumnDescriptor& its = *reader.metadata()->schema()->Column(column);
    if (its.physical_type() != parquet::Type::INT96) continue;
    const auto values =
        std::static_pointer_cast<parquet::Int96Reader>(reader.RowGroup(group)->Column(column));
    constexpr std::size_t maximum = 1024;
    std::array<parquet::Int96, maximum> some;
    std::array<std::int16_t, maximum> definitions, repetitions;
    while (values->HasNext()) {
      std::int64_t found = 0;
      const auto passed =
          values->ReadBatch(maximum, definitions.data(), repetitions.data(), some.data(), &found);
      for (std::size_t i = 0; i < static_cast<std::size_t>(found); ++i) {
        if (fits_in_unit(some[i], unit)) continue;
        constexpr std::array<std::string_view, 4> names{"seconds", "milliseconds", "microseconds",
                                                        "nanoseconds"};
        throw error(errc::format,
                    {"the column '", its.path()->ToDotString(), "' has a timestamp of INT96 that ",
                     names[static_cast<std::size_t>(unit)], " in 64 bits cannot count",
                     unit == timestamp_unit::nano
                         ? ", which end in 2262: read it with "
                           "parquet_options{.coerce_int96_timestamp_unit = timestamp_unit::micro}"
                         : ": the file is damaged"});
      }
      if (passed == 0 && found == 0) break;
    }
  }
}

}  // namespace penstock::inline v0_1::detail
