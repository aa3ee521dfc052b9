/** Codes of connections that were never made, so nothing was sent. */
export const NO_CONNECTION = [
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'UND_ERR_CONNECT_TIMEOUT',
  'ERR_TLS_CERT_ALTNAME_INVALID',
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
] as const;

/** Whether the error, a cause of it, or one of several has one of the codes. */
export function hasCode(error: unknown, codes: ReadonlySet<string>): boolean {
  if (error instanceof AggregateError) return error.errors.some((one) => hasCode(one, codes));
  const { code, cause } = error as { code?: unknown; cause?: unknown };
  return codes.has(String(code)) || (cause instanceof Error && hasCode(cause, codes));
}
