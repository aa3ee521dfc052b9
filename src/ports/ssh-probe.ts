/** An SSH endpoint, at its public address. */
export interface SshTarget {
  host: string;
  port: number;
  username: string;
}

/** The steps of a probe, in order. */
export type ProbeStep = 'connect' | 'banner' | 'handshake' | 'host_key' | 'auth';

export type ProbeResult =
  | { ok: true; hostKeyFingerprint: string }
  | {
      ok: false;
      step: ProbeStep;
      /** Index in `publicKeys` of the refused key, if `step` is `auth`. */
      keyIndex?: number;
      detail: string;
    };

/**
 * Proves O: "ONLINE means running and reachable with a live SSH endpoint", without a private key:
 * a handshake, then for each key a publickey query (RFC 4252 §7), one key per connection.
 */
export interface SshProbe {
  /**
   * Never throws. `publicKeys` are authorized_keys lines. If `hostKeyFingerprint` (OpenSSH's `SHA256:…` form) is
   * given, a host with another key fails at `host_key`. After `withinMs` the probe fails at its current step.
   */
  probe(
    target: SshTarget,
    publicKeys: readonly string[],
    hostKeyFingerprint?: string,
    withinMs?: number,
  ): Promise<ProbeResult>;
}
