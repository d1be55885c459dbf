//! The filters of a hotel search.

use crate::string_enum::string_enum;

string_enum! {
    /// A hotel filter, one of 24.
    pub enum HotelFilter {
        /// The booking can be cancelled without cost.
        FreeCancellation = "free_cancellation",
        /// With breakfast.
        BreakfastIncluded = "breakfast_included",
        /// With breakfast and lunch.
        BreakfastAndLunch = "breakfast_and_lunch",
        /// With breakfast and dinner.
        BreakfastAndDinner = "breakfast_and_dinner",
        /// With all meals.
        AllMealsIncluded = "all_meals_included",
        /// All inclusive.
        AllInclusive = "all_inclusive",
        /// Wireless internet at no cost.
        FreeWifi = "free_wifi",
        /// With a swimming pool.
        SwimmingPool = "swimming_pool",
        /// With a gym.
        Gym = "gym",
        /// With parking.
        Parking = "parking",
        /// The front desk is always staffed.
        FrontDesk24h = "front_desk_24h",
        /// Reviewed 7 or better.
        ReviewScore7 = "review_score_7",
        /// Reviewed 8 or better.
        ReviewScore8 = "review_score_8",
        /// Reviewed 9 or better.
        ReviewScore9 = "review_score_9",
        /// The room has its own bathroom.
        PrivateBathroom = "private_bathroom",
        /// With air conditioning.
        AirConditioning = "air_conditioning",
        /// Three stars.
        Stars3 = "stars_3",
        /// Four stars.
        Stars4 = "stars_4",
        /// Five stars.
        Stars5 = "stars_5",
        /// Pets are allowed.
        PetsAllowed = "pets_allowed",
        /// No children.
        AdultsOnly = "adults_only",
        /// With a sauna.
        Sauna = "sauna",
        /// Guests praise the breakfast.
        VeryGoodBreakfast = "very_good_breakfast",
        /// Can be paid online.
        AcceptsOnlinePayment = "accepts_online_payment",
    }
}
