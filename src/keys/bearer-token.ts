const BEARER = /^Bearer +([A-Za-z0-9._~+/=-]{1,512})$/i;

/** The bearer token of an `Authorization` header; undefined: it has none. */
export function bearerToken(authorization: string | undefined): string | undefined {
  return authorization === undefined ? undefined : BEARER.exec(authorization)?.[1];
}
