// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/source/rows/document_files.hpp>

#include <algorithm>
#include <string>
#include <unordered_map>

namespace penstock::inline v0_1::detail {

PENSTOCK_INLINE void document_files::read(storage_facts where, session_view session, token_type type) {
  const auto& names = where.names;
  std::unordered_map<std::string, object_id> indexes;  // by prefix
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (names[i].ends_with(".idx"))
      indexes.emplace(megatron_prefix(names[i]), static_cast<object_id>(i));
    else
      objects.push_back(static_cast<object_id>(i));
  }
  width = type.width;
  std::vector<std::uint64_t> begins;
  std::vector<manifest::shard> entries;
  std::uint64_t tokens = 0;
  for (const object_id object : objects) {
    const object_version version = session.version(object);
    const auto found = indexes.find(megatron_prefix(names[object]));
    if (found == indexes.end())
      throw error(errc::argument, "megatron_documents: the storage names no .idx for this file")
          .in_file(names[object]);
    const std::size_t before = begins.size();
    std::uint64_t count = 0, index_hash = 0;
    const object_bytes bytes = session.range(found->second, 0, session.size(found->second));
    in_file(names[found->second], [&] {
      const megatron_index index(bytes);
      count = index.read(
          type, [&](std::uint64_t first, std::uint64_t) { begins.push_back(tokens + first); },
          [](std::uint64_t, std::uint64_t) {});
      index_hash = index.hash();
    });
    in_file(names[object], [&] {
      if (const std::uint64_t size = count * width; size != version.size)
        refuse_tokens({"the index says ", count, " tokens, which are ", size, " bytes, but the file has ",
                       version.size, "; copy both again"},
                      std::min(size, version.size));
    });
    const std::uint64_t hash = hash_of_file(session, object, version.size);
    learn_ends(object, hash);
    entries.push_back({names[object], version.size, begins.size() - before, count * width,
                       penstock::fingerprint{}.add(hash, index_hash, width).value()});
    versions.push_back(version);
    file_firsts.push_back(tokens);
    tokens += count;
  }
  if (begins.empty())
    throw error(errc::argument, "megatron_documents: the dataset has no documents")
        .in_file(objects.empty() ? "" : names[objects.front()]);
  begins.push_back(tokens);
  firsts = shared<const std::vector<std::uint64_t>>(new std::vector<std::uint64_t>(std::move(begins)));
  shards = manifest(std::move(entries));
}

PENSTOCK_INLINE std::string document_files::describe() const {
  return text({"megatron_documents(", versions.size(), " files, ", firsts->back(),
               " tokens): ", shards.samples(), " documents"});
}

}  // namespace penstock::inline v0_1::detail
