import type { FailureKind } from '../transcript/records.ts';
/** One HTTP request in its final form. Only headers that HTTP itself needs are added. */
export interface HttpRequest {
  method: string;
  /** Absolute. */
  url: string;
  /** Lowercase names. */
  headers: Readonly<Record<string, string>>;
  body?: string;
}

interface OfConnection {
  /** SHA-256 of the public key that the server showed in TLS (SubjectPublicKeyInfo, DER), hex. Absent without TLS. */
  tlsKey?: string;
}

/** A complete answer. */
export interface HttpAnswer extends OfConnection {
  status: number;
  /** Lowercase names; several of one name are joined by `, `. */
  headers: Readonly<Record<string, string>>;
  /** As UTF-8. */
  body: string;
  /** Milliseconds from sending the request to the first byte of the answer. */
  firstByteMs: number;
  /** Milliseconds from sending the request to the last byte of the answer. */
  totalMs: number;
}

export interface HttpFailure extends OfConnection {
  failure: FailureKind;
  /** A readable description. */
  message: string;
  totalMs: number;
}

export interface SendLimits {
  /** Timeout of the whole exchange. */
  timeoutMs: number;
  maxBodyBytes: number;
  signal?: AbortSignal;
}

/** Sends requests to the target. Follows no redirects, keeps no cookies, never retries or throws. */
export interface Transport {
  send(request: HttpRequest, limits: SendLimits): Promise<HttpAnswer | HttpFailure>;
  /** The time to open a TCP connection to the host of `url`, in milliseconds; undefined if unknown. */
  roundTripMs(url: string, timeoutMs: number): Promise<number | undefined>;
  close(): Promise<void>;
}
