import type { SandboxProvider } from '../../provider.ts';

export type FaultTarget = Pick<SandboxProvider, 'platform' | 'resourceOf' | 'wake' | 'changes'>;

/** Providers by name. */
export type Targets = ReadonlyMap<string, FaultTarget>;
