//! What was made for a key; what is not used is forgotten.

use std::collections::HashMap;

/// At least the last `half` values that were asked for, and at most twice as many.
pub struct Recent<V> {
    half: usize,
    young: HashMap<Vec<u64>, V>,
    old: HashMap<Vec<u64>, V>,
}

impl<V: Clone> Recent<V> {
    pub fn new(half: usize) -> Self {
        Self { half, young: HashMap::new(), old: HashMap::new() }
    }

    /// The value of a key, made now where it is not known.
    pub fn find<E>(&mut self, key: &[u64], make: impl FnOnce() -> Result<V, E>) -> Result<V, E> {
        if let Some(found) = self.young.get(key) {
            return Ok(found.clone());
        }
        let found = self.old.remove(key).map_or_else(make, Ok)?;
        if self.young.len() >= self.half {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(key.to_vec(), found.clone());
        Ok(found)
    }

    pub fn clear(&mut self) {
        self.young.clear();
        self.old.clear();
    }

    pub fn len(&self) -> usize {
        self.young.len() + self.old.len()
    }
}

#[cfg(test)]
mod tests {
    use super::Recent;

    #[test]
    fn what_is_used_stays_and_the_rest_is_forgotten() {
        let mut recent = Recent::new(20);
        let mut made = vec![];
        for key in 0..1000_u64 {
            for asked in [0, key] {
                let found = recent.find(&[asked], || {
                    made.push(asked);
                    Ok::<_, ()>(asked)
                });
                assert_eq!(found, Ok(asked));
            }
            assert!(recent.len() <= 40);
        }
        assert_eq!(made.iter().filter(|key| **key == 0).count(), 1);
        assert_eq!(made.len(), 1000);
        recent.clear();
        assert_eq!(recent.find(&[5], || Err("made again")), Err("made again"));
    }
}
