import { X509Certificate } from 'node:crypto';
import type {
  CertificateSeen,
  CertificateUse,
  KnownCertificate,
  SeenCertificate,
} from '../ports/certificates.ts';
import { type Clock, DAY_MS, type Timer } from '../ports/clock.ts';
import type { Log } from '../ports/log.ts';

/** Certificates that renew automatically are renewed earlier than this. */
export const ENDING_SOON_MS = 14 * DAY_MS;
const URGENT_MS = 3 * DAY_MS;
const HOUR_MS = 3_600_000;
const EXAMINE_EVERY_MS = HOUR_MS;
const PEM = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g;

/** Called when a certificate ends soon, and when it was renewed. */
export interface CertificateListener {
  endsSoon(certificate: KnownCertificate, text: string): void;
  isRenewed(certificate: KnownCertificate): void;
}

type Watched = KnownCertificate & {
  /** False: the certificate was refused as expired, and `endsAt` is when that was first seen. */
  isEndKnown: boolean;
  reportedDays?: number;
};

const WHOSE: Readonly<Record<CertificateUse, (name: string) => string>> = {
  api: () => "the API's TLS certificate",
  admin: () => "the admin listener's TLS certificate",
  provider: (name) => `the TLS certificate of the provider ${name}`,
  driver: (name) => `the TLS certificate of the driver of the platform ${name}`,
  incus_server: (name) => `the certificate of Incus (server_certificate) of the platform ${name}`,
  incus_client: (name) =>
    `the certificate that Berth shows to Incus (client_certificate) for the platform ${name}`,
};

/**
 * The certificates that this process depends on. From 14 days before its end, each is logged at once and then every
 * day, as an error in its last 3 days.
 */
export class Certificates {
  readonly #deps: { clock: Clock; log: Log };
  readonly #known = new Map<string, Watched>();
  #listener: CertificateListener | undefined;
  #timer: Timer | undefined;

  constructor(deps: { clock: Clock; log: Log }) {
    this.#deps = deps;
  }

  /** Returns all known certificates. */
  list(): KnownCertificate[] {
    return [...this.#known.values()].map(({ use, name, endsAt }) => ({ use, name, endsAt }));
  }

  /** Returns the function that reports the certificate of one use and name. */
  of(use: CertificateUse, name: string): CertificateSeen {
    const key = `${use} ${name}`;
    return (seen) => {
      const now = this.#deps.clock.now();
      const before = this.#known.get(key);
      const endsAt = seen === 'ended' ? Math.min(before?.endsAt ?? now, now) : endOf(seen);
      const known = {
        use,
        name,
        endsAt,
        isEndKnown: seen !== 'ended' || (before?.endsAt === endsAt && before.isEndKnown),
        ...(before?.reportedDays !== undefined && { reportedDays: before.reportedDays }),
      };
      this.#known.set(key, known);
      if (before?.endsAt !== endsAt) this.#examine(known);
    };
  }

  /** Checks all certificates every hour from now on. Also calls `listener` for those already known to end soon. */
  start(listener?: CertificateListener): void {
    this.#listener = listener;
    for (const known of this.#known.values()) {
      if (listener !== undefined && this.#endsSoon(known)) listener.endsSoon(known, this.#textOf(known));
    }
    const round = (): void => {
      this.#timer = this.#deps.clock.setTimer(EXAMINE_EVERY_MS, round);
      for (const known of this.#known.values()) this.#examine(known);
    };
    this.#timer = this.#deps.clock.setTimer(EXAMINE_EVERY_MS, round);
  }

  stop(): void {
    this.#timer?.cancel();
  }

  #examine(known: Watched): void {
    const { use, name, endsAt, isEndKnown } = known;
    const { clock, log } = this.#deps;
    const fields = {
      certificate: use,
      name,
      ...(isEndKnown && { ends_at: new Date(endsAt).toISOString() }),
    };
    if (!this.#endsSoon(known)) {
      if (known.reportedDays === undefined) return;
      delete known.reportedDays;
      log.info(fields, `${WHOSE[use](name)} was renewed`);
      this.#listener?.isRenewed(known);
      return;
    }
    const days = Math.floor((endsAt - clock.now()) / DAY_MS);
    if (known.reportedDays === days) return;
    known.reportedDays = days;
    const text = this.#textOf(known);
    log[endsAt - clock.now() < URGENT_MS ? 'error' : 'warn'](fields, text);
    this.#listener?.endsSoon(known, text);
  }

  #endsSoon({ endsAt }: KnownCertificate): boolean {
    return endsAt - this.#deps.clock.now() < ENDING_SOON_MS;
  }

  #textOf({ use, name, endsAt, isEndKnown }: Watched): string {
    const leftMs = endsAt - this.#deps.clock.now();
    const at = new Date(endsAt).toISOString();
    return leftMs <= 0
      ? `${WHOSE[use](name)} ${isEndKnown ? `ended on ${at}` : 'has ended'}: connections are refused; renew it`
      : `${WHOSE[use](name)} ends in ${toTimeLeft(leftMs)}, on ${at}: renew it`;
  }
}

/** When the first certificate of the chain ends. Clients then refuse the chain. */
function endOf(seen: Exclude<SeenCertificate, 'ended'>): number {
  if ('validTo' in seen) return Date.parse(seen.validTo);
  const ends = (seen.pem.match(PEM) ?? [seen.pem]).map((pem) => Date.parse(new X509Certificate(pem).validTo));
  return Math.min(...ends);
}

/** Formats a time in days, or in hours if it is under a day. */
export function toTimeLeft(ms: number): string {
  const [count, what] = ms >= DAY_MS ? [Math.floor(ms / DAY_MS), 'day'] : [Math.floor(ms / HOUR_MS), 'hour'];
  if (count === 0) return 'less than an hour';
  return count === 1 ? `1 ${what}` : `${count} ${what}s`;
}
