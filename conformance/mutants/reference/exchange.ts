/** A request as the reference sees it. */
export interface ReferenceRequest {
  method: string;
  /** Below the base URL. */
  path: string;
  /** As O: writes it, `POST /instances/{instanceId}/stop`; undefined where there is none. */
  route?: string;
  query: URLSearchParams;
  /** Lowercase names. */
  headers: Readonly<Record<string, string>>;
  text: string;
}

/** An answer before it is put into bytes. */
export interface WireAnswer {
  status: number;
  headers: Record<string, string>;
  /** Absent: no body. */
  json?: unknown;
  /** Sent as it is, in place of `json`. */
  raw?: string;
}

export function json(status: number, body: unknown): WireAnswer {
  return { status, headers: {}, json: body };
}
