// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// The storage room: where bytes come from.

#include <penstock/storage/any_of.hpp>
#include <penstock/storage/braces.hpp>
#include <penstock/storage/components.hpp>
#include <penstock/storage/concepts.hpp>
#include <penstock/storage/disk_cache.hpp>
#include <penstock/storage/fetched.hpp>
#include <penstock/storage/file.hpp>
#include <penstock/storage/file_names.hpp>
#include <penstock/storage/file_writer.hpp>
#include <penstock/storage/hedged.hpp>
#include <penstock/storage/http_error.hpp>
#include <penstock/storage/http_options.hpp>
#include <penstock/storage/mapped_file.hpp>
#include <penstock/storage/memory_cache.hpp>
#include <penstock/storage/memory_files.hpp>
#include <penstock/storage/object_check.hpp>
#include <penstock/storage/range_store.hpp>
#include <penstock/storage/retrying.hpp>
#include <penstock/storage/session_adaptor.hpp>
#include <penstock/storage/session_report.hpp>
#include <penstock/storage/session_view.hpp>
#include <penstock/storage/sha256_list.hpp>
#include <penstock/storage/sidecar.hpp>
#include <penstock/storage/sigbus_guard.hpp>
#include <penstock/storage/simulated_storage.hpp>
#include <penstock/storage/simulated_storage_options.hpp>
#include <penstock/storage/stage_to.hpp>
#include <penstock/storage/storage_counters.hpp>
#include <penstock/storage/threaded_reads.hpp>
#include <penstock/storage/throttled.hpp>
#include <penstock/storage/url.hpp>
