// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#if !__has_include(<parquet/arrow/reader.h>)
#error "penstock/source/tables/arrow_cpp.hpp needs Arrow C++ with Parquet: link penstock::arrow"
#endif

#include <penstock/core/error.hpp>
#include <penstock/storage/reads/arrow_errors.hpp>

// The headers of Arrow warn where ours do not.
#ifdef __GNUC__
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wunused-parameter"
#endif
#include <arrow/api.h>
#include <arrow/c/bridge.h>
#include <arrow/compute/cast.h>
#include <arrow/compute/exec.h>
#include <arrow/io/interfaces.h>
#include <arrow/io/memory.h>
#include <arrow/util/compression.h>
#include <parquet/arrow/reader.h>
#include <parquet/arrow/schema.h>
#include <parquet/arrow/writer.h>
#include <parquet/bloom_filter.h>
#include <parquet/bloom_filter_reader.h>
#include <parquet/column_page.h>
#include <parquet/column_reader.h>
#include <parquet/exception.h>
#include <parquet/file_reader.h>
#include <parquet/metadata.h>
#include <parquet/page_index.h>
#include <parquet/properties.h>
#include <parquet/schema.h>
#include <parquet/statistics.h>
#include <parquet/types.h>
#ifdef __GNUC__
#pragma GCC diagnostic pop
#endif

#include <new>

namespace penstock::inline v0_1::detail {

inline void check_arrow(const arrow::Status& done, errc code = errc::io) {
  if (done.IsOutOfMemory()) throw std::bad_alloc();
  if (!done.ok()) throw error(code, {"Arrow says: ", arrow_message(done.message())});
}

/// `work.operator()<Type>()` with the first of the types of which `is.operator()<Type>()` is true; false if
/// it is none.
template <class... Types, class Is, class Work>
bool with_one_of(const Is& is, const Work& work) {
  bool result = false;
  (void)((is.template operator()<Types>() && (result = work.template operator()<Types>(), true)) || ...);
  return result;
}

}  // namespace penstock::inline v0_1::detail
