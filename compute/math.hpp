// Scalar functions in double precision for the numbers that decide bits outside of kernels:
// learning rates, bias corrections, initial weights, rotary tables. Only + - * / and fma, so no
// libm of any machine shows. Errors stay within 1 ulp (pow: 2 ulp); the price, a few dozen
// operations, does not matter here.
#pragma once

namespace troupe::compute::math {

double exp(double x);
double log(double x);
// x >= 0; pow(x, 0) is 1.
double pow(double x, double y);
// |x| below 2^31: beyond that the reduced angle loses digits.
double sin(double x);
double cos(double x);
// cos(pi x) for |x| below 2^50, exact for multiples of 1/2.
double cos_pi(double x);

}  // namespace troupe::compute::math
