// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#if !__has_include(<boost/beast/http/parser.hpp>) || !__has_include(<openssl/ssl.h>)
#error "penstock/storage/web/web_boost.hpp needs Boost.Beast and OpenSSL: link penstock::http"
#endif

#include <penstock/core/cpp20.hpp>

// Asio and Boost.Asio of 2020 have namespaces of the same names outside their own, so that no file could
// include both. Those of Boost get other names here; in newer versions they have.
#define asio_execution_bulk_execute_fn boost_asio_execution_bulk_execute_fn
#define asio_execution_connect_fn boost_asio_execution_connect_fn
#define asio_execution_execute_fn boost_asio_execution_execute_fn
#define asio_execution_schedule_fn boost_asio_execution_schedule_fn
#define asio_execution_set_done_fn boost_asio_execution_set_done_fn
#define asio_execution_set_error_fn boost_asio_execution_set_error_fn
#define asio_execution_set_value_fn boost_asio_execution_set_value_fn
#define asio_execution_start_fn boost_asio_execution_start_fn
#define asio_execution_submit_fn boost_asio_execution_submit_fn
#define asio_prefer_fn boost_asio_prefer_fn
#define asio_query_fn boost_asio_query_fn
#define asio_require_concept_fn boost_asio_require_concept_fn
#define asio_require_fn boost_asio_require_fn

#include <boost/asio/buffer.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/address.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/error.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/error.hpp>
#include <boost/beast/http/fields.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/beast/http/verb.hpp>

#undef asio_execution_bulk_execute_fn
#undef asio_execution_connect_fn
#undef asio_execution_execute_fn
#undef asio_execution_schedule_fn
#undef asio_execution_set_done_fn
#undef asio_execution_set_error_fn
#undef asio_execution_set_value_fn
#undef asio_execution_start_fn
#undef asio_execution_submit_fn
#undef asio_prefer_fn
#undef asio_query_fn
#undef asio_require_concept_fn
#undef asio_require_fn

namespace penstock::inline v0_1::detail::web {

namespace net = boost::asio;
using boost::system::error_code;

}  // namespace penstock::inline v0_1::detail::web
