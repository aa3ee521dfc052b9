import { faultCatalog } from '../../src/sandbox/faults/catalog/catalog.ts';
import { type Fault, faultLayers } from '../../src/sandbox/faults/fault.ts';

const rows = Object.entries(faultCatalog) as [string, Fault][];

const INTRO = `# Faults of the sandbox

\`sandbox.faults.arm(NAME, OPTIONS)\` arms a fault: at a \`provider\`, a \`route\`, an \`instance\` or a \`volume\`, for
a number of \`times\` or \`'sticky'\` (in TypeScript also \`Infinity\`), after \`skip\` occasions, with a \`probability\` drawn from
\`seed\`, for \`for_ms\` milliseconds. With \`must_trigger\`, it is reported if it never triggered. Each group begins with the rule that
its faults test, of the contract (O) or the marketplace (M). In brackets: a fault's settings, and the routes or calls where it
happens (none: at all; instances, offers: reads of these). It happens once if it is not *sticky*. A fault of *connections* counts connections. It begins with a request that fits. Later requests on that connection, to
the same \`provider\`, meet it too, until it is disarmed. Generated from src/sandbox/faults/catalog/.`;

const OWN_RULES = 'Berth: what it does then is in [reliability.md](reliability.md#faults).';

/** Groups of routes and calls that many faults have. */
const GROUPS: Readonly<Record<string, readonly string[]>> = {
  instances: ['GET /instances/{id}', 'GET /instances'],
  offers: ['GET /configurations', 'GET /availability'],
  changes: [
    ...['create', 'stop', 'start', 'restart', 'destroy'],
    ...['volumes.create', 'volumes.attach', 'volumes.detach', 'volumes.resize', 'volumes.destroy'],
  ],
  reads: ['get', 'volumes.get', 'list', 'volumes.list'],
};

function placesOf(on: readonly string[]): string[] {
  if (on.includes('*') || (on.includes('inventory') && on.includes('create'))) return [];
  const groups = Object.entries(GROUPS).filter(([, members]) => members.every((one) => on.includes(one)));
  const grouped = new Set(groups.flatMap(([, members]) => members));
  return [
    ...groups.map(([name]) => name),
    ...on.filter((one) => !grouped.has(one)).map((one) => `\`${one}\``),
  ];
}

function lineOf([name, fault]: [string, Fault]): string {
  const { does, params, times, on } = fault;
  const settings = Object.keys(params.shape).map((key) => `\`${key}\``);
  const notes = [
    settings.join(', '),
    placesOf(on).join(', '),
    times === 'sticky' ? '*sticky*' : '',
    'isOfConnections' in fault ? '*connections*' : '',
  ];
  const shown = notes.filter(Boolean).join('; ');
  return `- \`${name}\`${shown === '' ? '' : ` (${shown})`}: ${does}`;
}

/** docs/sandbox-faults.md: every fault, by what it happens to and the rule that it tests. */
export function sandboxFaultsPage(): string {
  const sections = Object.entries(faultLayers).flatMap(([layer, about]) => {
    const byRule = Map.groupBy(
      rows.filter(([, fault]) => fault.layer === layer),
      ([, { rule }]) => (rule.startsWith('Design: ') ? OWN_RULES : rule),
    );
    const groups = [...byRule].map(([rule, faults]) => `${rule}\n\n${faults.map(lineOf).join('\n')}`);
    return [`## ${layer}`, about, ...groups];
  });
  return `${[INTRO, ...sections].join('\n\n')}\n`;
}
