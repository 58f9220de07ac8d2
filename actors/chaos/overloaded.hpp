// Several functions as one visitor of a variant.
#pragma once

namespace troupe::actors::chaos {

template <class... Ts>
struct overloaded : Ts... {
  using Ts::operator()...;
};
// Compilers before the whole of C++20 do not find this by themselves.
template <class... Ts>
overloaded(Ts...) -> overloaded<Ts...>;

}  // namespace troupe::actors::chaos
