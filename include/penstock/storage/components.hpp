// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/cpp20.hpp>

/// Declares the storages of optional components. A program that names one without its header has an
/// incomplete type, and its compiler shows the line from here.
namespace penstock::inline v0_1 {

class http;        // penstock: write #include <penstock/storage/http.hpp>, and link penstock::http
class s3;          // penstock: write #include <penstock/storage/s3.hpp>, and link penstock::s3
class uring_file;  // penstock: write #include <penstock/storage/uring_file.hpp>, and link penstock::uring

}  // namespace penstock::inline v0_1
