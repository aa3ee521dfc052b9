import { newPublicKey } from '../doubles/ssh-keys.ts';

/** A create that the bundled catalog can serve many times over. */
export function instanceRequest(overrides: Record<string, unknown> = {}): Record<string, unknown> {
  return { configuration_id: 'cpu-4x16', region: 'eu-frankfurt', ssh_keys: [newPublicKey()], ...overrides };
}

export function volumeRequest(overrides: Record<string, unknown> = {}): Record<string, unknown> {
  return { name: 'data', size_gb: 100, region: 'eu-frankfurt', ...overrides };
}
