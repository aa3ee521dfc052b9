import { z } from 'zod';
import type { Offer } from '../../../orchestrator/catalog/catalog.ts';
import { broken, type Diagnosis, ok, warning } from '../../../ports/diagnosis.ts';
import type { IncusApi } from '../api.ts';
import type { IncusConfig, IncusOffer } from '../options.ts';
import { imageOf } from '../translate.ts';
import { failed } from './failed.ts';

const imageSchema = z.object({
  type: z.string(),
  properties: z
    .record(z.string(), z.string())
    .nullish()
    .transform((properties) => properties ?? {}),
});

/** Checks that each image of an offer exists, is of the offer's kind, and is not declared to lack cloud-init. */
export async function* diagnoseImages(
  api: IncusApi,
  offers: readonly { offer: Offer; machine: IncusOffer }[],
  options: IncusConfig,
): AsyncGenerator<Diagnosis> {
  const kindsByAlias = new Map<string, Set<string>>();
  for (const { offer, machine } of offers)
    for (const image of offer.osOptions) {
      const { alias } = imageOf(image, machine, options);
      kindsByAlias.set(alias, (kindsByAlias.get(alias) ?? new Set()).add(machine.kind));
    }
  for (const [alias, kinds] of kindsByAlias) yield await diagnoseImage(api, alias, kinds);
}

async function diagnoseImage(api: IncusApi, alias: string, kinds: ReadonlySet<string>): Promise<Diagnosis> {
  const subject = `image ${alias}`;
  const remedy = 'See the part on images of docs/how-to/incus.md.';
  try {
    const found = await api.image(alias);
    if (found === undefined) return broken(subject, 'There is none of that alias or fingerprint.', remedy);
    const { type, properties } = imageSchema.parse(found);
    const others = [...kinds].filter((kind) => kind !== type);
    if (others.length > 0)
      return broken(
        subject,
        `It is of type ${type}, and an offer makes a ${others.join(' and a ')} of it.`,
        'Give the offer an image of its kind, under `machine.images`.',
      );
    return properties['variant'] === 'default'
      ? warning(
          subject,
          'It is of the variant default, which has no cloud-init: no key gets into a machine.',
          remedy,
        )
      : ok(subject, `It is there, of type ${type}.`);
  } catch (error) {
    return failed(subject, error, remedy);
  }
}
