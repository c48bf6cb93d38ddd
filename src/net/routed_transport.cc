#include "net/routed_transport.h"

#include <utility>

#include "base/assert.h"
#include "net/curl_transport.h"
#include "net/detail/request.h"
#include "net/lean/lean_transport.h"

namespace forebay::net {
namespace {

class RoutedTransport final : public HttpTransport {
 public:
  RoutedTransport(std::unique_ptr<HttpTransport> lean, std::unique_ptr<HttpTransport> curl,
                  ProxyRules proxies)
      : lean_(std::move(lean)), curl_(std::move(curl)), proxies_(std::move(proxies)) {}

  // The lowest bit of an id says whose it is.
  RequestId Start(HttpRequest request, HttpHandler* handler) override {
    const Result<detail::UrlParts> url = detail::SplitUrl(request.url);
    if (url.ok() && proxies_.Applies(url->tls, url->host)) {
      return curl_->Start(std::move(request), handler) << 1 | 1;
    }
    return lean_->Start(std::move(request), handler) << 1;
  }
  void Cancel(RequestId id) override { ((id & 1) != 0 ? curl_ : lean_)->Cancel(id >> 1); }
  void Close(Task on_closed) override {
    on_closed_ = std::move(on_closed);
    lean_->Close([this] { OnOneClosed(); });
    curl_->Close([this] { OnOneClosed(); });
  }
  Executor& executor() override { return lean_->executor(); }

 private:
  void OnOneClosed() {
    if (++closed_ == 2) std::exchange(on_closed_, nullptr)();
  }

  const std::unique_ptr<HttpTransport> lean_;
  const std::unique_ptr<HttpTransport> curl_;
  const ProxyRules proxies_;
  int closed_ = 0;
  Task on_closed_;
};

}  // namespace

Result<std::unique_ptr<HttpTransport>> MakeTransport(sys::EventLoop& loop,
                                                     const TransportOptions& options) {
  FB_ASSIGN_OR_RETURN(auto lean, MakeLeanTransport(loop, {.ca_bundle = options.ca_bundle,
                                                          .verify_tls = options.verify_tls,
                                                          .hosts = options.hosts}));
  if (!options.proxies.any()) return lean;
  FB_ASSIGN_OR_RETURN(auto curl, MakeCurlTransport(loop, {.ca_bundle = options.ca_bundle,
                                                          .verify_tls = options.verify_tls}));
  return std::unique_ptr<HttpTransport>(
      std::make_unique<RoutedTransport>(std::move(lean), std::move(curl), options.proxies));
}

}  // namespace forebay::net
