// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/source/arrow_ipc.hpp>
#include <penstock/source/arrow_stream.hpp>
#include <penstock/source/concat.hpp>
#include <penstock/source/concepts.hpp>
#include <penstock/source/derived_index.hpp>
#include <penstock/source/directory.hpp>
#include <penstock/source/from.hpp>
#include <penstock/source/generated.hpp>
#include <penstock/source/idx.hpp>
#include <penstock/source/index_policy.hpp>
#include <penstock/source/index_shards.hpp>
#include <penstock/source/lines.hpp>
#include <penstock/source/manifest.hpp>
#include <penstock/source/mix.hpp>
#include <penstock/source/npy_rows.hpp>
#include <penstock/source/npz_rows.hpp>
#include <penstock/source/shard_names.hpp>
#include <penstock/source/shard_writer.hpp>
#include <penstock/source/synthetic.hpp>
#include <penstock/source/tar_writer.hpp>
#include <penstock/source/tokens.hpp>
#include <penstock/source/unpacked.hpp>
#include <penstock/source/webdataset.hpp>
#include <penstock/source/webdataset_stream.hpp>
#include <penstock/source/zip.hpp>
