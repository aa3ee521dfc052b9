import type { BodyRefusals } from '../../http/body.ts';
import { clientAddress } from '../../http/client-address.ts';
import type { WireProblem, WireRefusal } from '../../http/server.ts';
import { ApiError, invalidRequest } from '../contract/errors.ts';
import { type RateLimits, rateLimitHeaders } from './rate-limits.ts';

/** M: Errors: the same body also for what is wrong with a body. */
export const bodyRefusals: BodyRefusals = {
  malformed: (message) => invalidRequest([{ path: '', message }]),
  tooLarge: (maxBytes) =>
    new ApiError('PAYLOAD_TOO_LARGE', `The request body is larger than ${maxBytes} bytes.`, {
      details: { maxBytes },
    }),
};

const wireErrors: Readonly<Record<WireProblem, () => ApiError>> = {
  malformed: () => invalidRequest([{ path: '', message: 'expected a well-formed HTTP/1.1 request' }]),
  timed_out: () => new ApiError('REQUEST_TIMEOUT', 'The request did not arrive in full in time.'),
  headers_too_large: () => new ApiError('HEADERS_TOO_LARGE', 'The request headers are too large.'),
};

/** M: Errors and Limits: the same body and headers also for what is wrong below HTTP, which is counted nowhere. */
export function refuseWire(
  rateLimits: Pick<RateLimits, 'peek'>,
): (problem: WireProblem, remoteAddress: string | undefined) => WireRefusal {
  return (problem, remoteAddress) => {
    const error = wireErrors[problem]();
    const standing = rateLimits.peek('other', clientAddress(remoteAddress, undefined, 0));
    return {
      status: error.status,
      code: error.code,
      body: error.toBody(),
      headers: rateLimitHeaders(standing),
    };
  };
}
