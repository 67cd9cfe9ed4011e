// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#if !__has_include(<openssl/evp.h>)
#error "penstock/source/signed_manifest.hpp needs OpenSSL: link penstock::crypto"
#endif

#include <penstock/source/manifest.hpp>
#include <penstock/storage/signature.hpp>

namespace penstock::inline v0_1 {

/// Reads a manifest that is kept in a storage as text, if it was signed.
///
///     const signing_key ours(bytes_of("take the bytes from your vault!!"));
///     const std::string text = to_string(manifest());
///     std::ofstream("train.manifest") << text;
///     std::ofstream("train.manifest.sig") << text_of(ours.sign(bytes_of(text)).bytes);
///     const manifest known = read_manifest(file("train.manifest"), require_signature(ours.public_key()));
///
/// In: a storage of one object, beside which its signature lies; see `require_signature`.
/// Errors: those of `require_signature` and of `read_manifest` without it. A manifest knows the sizes of its
/// shards, and the places and keys of their samples, but no hash of their bytes: `checked` compares those.
template <storage Storage>
[[nodiscard]] manifest read_manifest(const Storage& where, const required_signature& rule) {
  const buffer text = detail::signed_bytes_in(where, rule, "a manifest");
  return detail::in_file(where.names()[0], [&] { return manifest_from_string(text_of(text.view())); });
}

}  // namespace penstock::inline v0_1
